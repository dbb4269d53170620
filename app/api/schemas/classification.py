"""Texts to classify, and what they are."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from app.api.schemas import RequestBody, ResponseBody
from app.api.schemas.inspection import MAX_TEXTS
from app.domain import COLLECTION_NAME
from app.services.examples import MAX_LABEL_CHARS, MAX_LABELS

MAX_CLASSIFIED_CHARS = 2_000_000
"""Of all texts of a request: seconds of tokenizing."""
MAX_DESCRIPTION_CHARS = 2_000


class LabelInput(RequestBody):
    label: str = Field(min_length=1, max_length=MAX_LABEL_CHARS, description="As it is answered.")
    description: str | None = Field(
        None,
        max_length=MAX_DESCRIPTION_CHARS,
        description="What the texts are compared with; the label itself if not given.",
    )


class ClassifyRequest(RequestBody):
    """Texts, and exactly one of `labels` and `classifier`."""

    texts: list[str] = Field(
        max_length=MAX_TEXTS,
        description=f"At most {MAX_TEXTS}, of at most {MAX_CLASSIFIED_CHARS} characters in all. A blank text "
        "has an `error` in its result, the others succeed.",
    )
    labels: list[str | LabelInput] | None = Field(
        None,
        min_length=1,
        max_length=MAX_LABELS,
        description="Zero-shot: each text is compared with each label, or with its description.",
    )
    classifier: str | None = Field(
        None, pattern=COLLECTION_NAME, description="A classifier that was trained from examples."
    )
    version: int | None = Field(
        None, ge=1, le=2**31, description="Of the classifier; its active version if not given."
    )
    multi_label: bool = Field(
        False, description="Zero-shot: whether a text may have several labels, each scored for itself."
    )
    top_k: int = Field(10, ge=1, le=MAX_LABELS, description="Most labels to answer for each text.")
    truncate: bool = Field(
        True,
        description="Whether a text beyond the model's limit is cut at its end (and reported as `truncated`);"
        " if not, the request is refused with 422.",
    )

    @model_validator(mode="after")
    def _is_one_task(self) -> Self:
        if (self.labels is None) == (self.classifier is None):
            raise ValueError("give exactly one of labels and classifier")
        if self.version is not None and self.classifier is None:
            raise ValueError("version goes with classifier")
        if self.multi_label and self.labels is None:
            raise ValueError("multi_label goes with labels; a classifier knows by itself")
        if self.labels is not None and len(self.described_labels()) < len(self.labels):
            raise ValueError("labels has the same label twice")
        n_chars = sum(map(len, self.texts))
        if n_chars > MAX_CLASSIFIED_CHARS:
            raise ValueError(
                f"the texts have {n_chars} characters, at most {MAX_CLASSIFIED_CHARS} are allowed"
            )
        return self

    def described_labels(self) -> Mapping[str, str]:
        """Label to what is encoded for it."""
        return {
            each if isinstance(each, str) else each.label: each
            if isinstance(each, str)
            else each.description or each.label
            for each in self.labels or []
        }


class LabelScoreResponse(ResponseBody):
    label: str
    score: float = Field(
        description="Probability, 0 to 1. They sum to 1 over all labels, unless a text may have several: "
        "then each stands for itself and 0.5 is the border. Zero-shot scores are not calibrated."
    )
    logit: float = Field(
        description="What labels are ranked by, unbounded. Zero-shot: a linear function of the cosine."
    )


class ClassificationResponse(ResponseBody):
    labels: list[LabelScoreResponse] = Field(description="Best first; empty where `error` says why.")
    out_of_scope: bool | None = Field(
        description="Whether the text is unlike all examples: `scope_score` is below `scope_threshold`. Null "
        "without a trained classifier."
    )
    scope_score: float | None = Field(
        description="Log of the summed exponentials of all logits (with several labels: the greatest logit),"
        " unbounded; greater is more like the examples."
    )
    n_tokens: int = Field(description="Tokens of the text before any truncation, special tokens included.")
    truncated: bool = Field(description="Whether the end of the text was cut off.")
    error: str | None = Field(description="Why this text was not classified.")


class ClassifyResponse(ResponseBody):
    results: list[ClassificationResponse] = Field(description="One for each text, in order.")
    task: Literal["zero-shot", "classifier"] = Field(description="How the labels were found.")
    multi_label: bool = Field(description="Whether each label was scored for itself.")
    model: str = Field(description="The model that read the texts.")
    classifier: str | None = Field(description="Name of the trained classifier.")
    version: int | None = Field(description="Its version that answered.")
    scope_threshold: float | None = Field(description="Of its `scope_score`.")
    max_tokens: int = Field(description="Most tokens of a text, special tokens included.")
    timings_ms: Mapping[str, float] = Field(description="Milliseconds in total.", examples=[{"total": 5.2}])
