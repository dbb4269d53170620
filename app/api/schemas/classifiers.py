"""Classifiers trained from examples."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import Field, model_validator

from app.api.schemas import RequestBody, ResponseBody
from app.labels import ClassifierVersion, Example
from app.services.classification import Training
from app.services.examples import MAX_EXAMPLES

MAX_EXAMPLE_CHARS = 100_000


class ExampleInput(RequestBody):
    """A text with its label, its labels, or neither: such a text is out of scope."""

    text: str = Field(min_length=1, max_length=MAX_EXAMPLE_CHARS)
    label: str | None = Field(None, description="The one label.")
    labels: list[str] | None = Field(
        None, max_length=100, description="Instead, where a text may have several (`multi_label=true`)."
    )

    @model_validator(mode="after")
    def _not_both(self) -> Self:
        if self.label is not None and self.labels is not None:
            raise ValueError("give label or labels, not both")
        return self

    def example(self) -> Example:
        labels: Sequence[str] = self.labels or ([] if self.label is None else [self.label])
        return Example(self.text, tuple(labels))


class TrainingRequest(RequestBody):
    examples: list[ExampleInput] = Field(
        description=f"At least two for each label, of at least two labels; at most {MAX_EXAMPLES}."
    )


class ActivationRequest(RequestBody):
    version: int = Field(ge=1, le=2**31, description="The version that shall answer from now on.")


class LabelReportResponse(ResponseBody):
    label: str
    n_examples: int = Field(description="Examples that have it.")
    precision: float = Field(description="Share of right ones among the predicted, 0 to 1.")
    recall: float = Field(description="Share of predicted ones among the right, 0 to 1.")
    f1: float = Field(description="Harmonic mean of precision and recall, 0 to 1.")


class ConfusionResponse(ResponseBody):
    label: str = Field(description="As the example says.")
    predicted: str = Field(description="As the classifier said.")
    n_examples: int = Field(description="How often.")


class TrainingReportResponse(ResponseBody):
    """Each example was judged by a classifier trained without it (cross-validation)."""

    n_folds: int = Field(description="Parts of the examples that were held out in turn.")
    accuracy: float = Field(description="Share of examples with exactly the right labels, 0 to 1.")
    macro_f1: float = Field(description="Mean of F1 over labels, 0 to 1.")
    labels: list[LabelReportResponse]
    confusions: list[ConfusionResponse] = Field(
        description="Pairs of confused labels, most frequent first, at most 50; empty with several labels."
    )
    in_scope_rejected: float = Field(
        description="Share of examples with a label that would count as out of scope, 0 to 1."
    )
    n_out_of_scope: int = Field(description="Examples without a label; they choose the threshold alone.")
    out_of_scope_rejected: float | None = Field(
        description="Share of them that would count as out of scope, 0 to 1; null without any."
    )
    scope_auroc: float | None = Field(
        description="Probability that an example with a label has a greater score of scope than one without."
    )


class ClassifierHeadResponse(ResponseBody):
    name: str
    version: int = Field(description="Number of the training: 1, 2, ...")
    is_active: bool = Field(description="Whether this version answers.")
    labels: list[str]
    multi_label: bool = Field(description="Whether a text may have several labels.")
    model: str = Field(description="Bi-encoder whose vectors it reads.")
    fingerprint: str = Field(description="Of that encoder; with another one the classifier is refused.")
    n_examples: int = Field(description="Different examples it was trained from.")
    scope_threshold: float = Field(description="Texts whose `scope_score` is less are out of scope.")
    created_at: dt.datetime


class ClassifierResponse(ClassifierHeadResponse):
    report: TrainingReportResponse

    @classmethod
    def of(cls, version: ClassifierVersion) -> "ClassifierResponse":
        return ClassifierResponse.model_validate(version)


class TrainedResponse(ClassifierResponse):
    timings_ms: Mapping[str, float] = Field(
        description="Milliseconds to encode the examples, to cross-validate and fit, and in total.",
        examples=[{"encode": 510.2, "fit": 430.9, "total": 950.1}],
    )

    @classmethod
    def of_training(cls, training: Training) -> "TrainedResponse":
        shown = ClassifierResponse.of(training.version)
        return TrainedResponse(**dict(shown), timings_ms=training.timings_ms)


class ClassifiersResponse(ResponseBody):
    classifiers: list[ClassifierHeadResponse] = Field(description="The active version of each, by name.")


class ClassifierVersionsResponse(ResponseBody):
    versions: list[ClassifierResponse] = Field(description="Newest first.")
