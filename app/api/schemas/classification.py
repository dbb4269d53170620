"""Texts to classify, and what they are."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from app.api.schemas import RequestBody, ResponseBody
from app.api.schemas.inspection import MAX_TEXTS
from app.domain import COLLECTION_NAME
from app.engine.entities import Aggregation
from app.engine.offsets import utf16_offsets
from app.engine.tagger import Tagged
from app.services.examples import MAX_LABEL_CHARS, MAX_LABELS

MAX_CLASSIFIED_CHARS = 2_000_000
"""Of all texts of a request: seconds of tokenizing."""
MAX_TAGGED_CHARS = 100_000
"""Of all texts of a request for entities: seconds of reading."""
MAX_DESCRIPTION_CHARS = 2_000


class LabelInput(RequestBody):
    label: str = Field(min_length=1, max_length=MAX_LABEL_CHARS, description="As it is answered.")
    description: str | None = Field(
        None,
        max_length=MAX_DESCRIPTION_CHARS,
        description="What the texts are compared with; the label itself if not given.",
    )


class ClassifyRequest(RequestBody):
    """Texts, and exactly one of `labels`, `classifier` and `model`."""

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
    model: str | None = Field(
        None, max_length=200, description="A fine-tuned model, by its name in `/v1/models`."
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
        if sum(task is not None for task in (self.labels, self.classifier, self.model)) != 1:
            raise ValueError("give exactly one of labels, classifier and model")
        if self.version is not None and self.classifier is None:
            raise ValueError("version goes with classifier")
        if self.multi_label and self.labels is None:
            raise ValueError("multi_label goes with labels; classifiers and models know by themselves")
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
    task: Literal["zero-shot", "classifier", "model"] = Field(description="How the labels were found.")
    multi_label: bool = Field(description="Whether each label was scored for itself.")
    model: str = Field(description="The model that read the texts.")
    classifier: str | None = Field(description="Name of the trained classifier.")
    version: int | None = Field(description="Its version that answered.")
    scope_threshold: float | None = Field(description="Of its `scope_score`.")
    max_tokens: int = Field(description="Most tokens of a text, special tokens included.")
    timings_ms: Mapping[str, float] = Field(
        description="Milliseconds in total, and of `load` if the model was used for the first time.",
        examples=[{"total": 5.2}],
    )


class TokenRequest(RequestBody):
    texts: list[str] = Field(
        max_length=MAX_TEXTS,
        description=f"At most {MAX_TEXTS}, of at most {MAX_TAGGED_CHARS} characters in all. Long ones are "
        "read in windows, none is cut. A blank text has an `error` in its result, the others succeed.",
    )
    aggregation: Aggregation = Field(
        "word",
        description="What a word of several pieces is: what its first piece is (`word`, `first`), all of "
        "them in the mean (`average`), or the surest (`max`). With `word`, `U.S.` and `1995-96` are one "
        "word each, as in the data that taggers are trained on, and a tagger trained by this project never "
        "goes on with an entity that did not begin; with the others a word ends at every punctuation mark, "
        "as in transformers' pipelines of these names.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        n_chars = sum(map(len, self.texts))
        if n_chars > MAX_TAGGED_CHARS:
            raise ValueError(f"the texts have {n_chars} characters, at most {MAX_TAGGED_CHARS} are allowed")
        return self


class EntityResponse(ResponseBody):
    entity_group: str = Field(description="Kind of the entity, such as PER, ORG, LOC or MISC.")
    score: float = Field(description="Mean probability of its words, 0 to 1.")
    word: str = Field(description="The text from start to end.")
    start: int = Field(description="Offset of its first character in the text, in code points.")
    end: int = Field(description="Offset behind its last character, in code points.")
    start_utf16: int = Field(description="`start` in UTF-16 code units, as JavaScript counts.")
    end_utf16: int = Field(description="`end` in UTF-16 code units.")


class TaggedResponse(ResponseBody):
    entities: list[EntityResponse] = Field(description="By offset; they do not overlap.")
    n_tokens: int = Field(description="Tokens of the text, special tokens included.")
    n_windows: int = Field(description="Pieces in which it was read.")
    unknown_share: float = Field(description="Share of tokens that the model cannot read, 0 to 1.")
    error: str | None = Field(description="Why this text was not read.")

    @classmethod
    def of(cls, text: str, tagged: Tagged | str) -> "TaggedResponse":
        if isinstance(tagged, str):
            return cls(entities=[], n_tokens=0, n_windows=0, unknown_share=0, error=tagged)
        starts = utf16_offsets(text, [each.start for each in tagged.entities]).tolist()
        ends = utf16_offsets(text, [each.end for each in tagged.entities]).tolist()
        return cls(
            entities=[
                EntityResponse(
                    entity_group=each.entity_group,
                    score=round(each.score, 6),
                    word=each.word,
                    start=each.start,
                    end=each.end,
                    start_utf16=start,
                    end_utf16=end,
                )
                for each, start, end in zip(tagged.entities, starts, ends, strict=True)
            ],
            n_tokens=tagged.n_tokens,
            n_windows=tagged.n_windows,
            unknown_share=round(tagged.unknown_share, 4),
            error=None,
        )


class TokenResponse(ResponseBody):
    results: list[TaggedResponse] = Field(description="One for each text, in order.")
    model: str = Field(description="The model that read the texts.")
    max_tokens: int = Field(description="Most tokens of one window, special tokens included.")
    timings_ms: Mapping[str, float] = Field(
        description="Milliseconds in total, and of `load` if the model was used for the first time.",
        examples=[{"total": 35.2}],
    )
