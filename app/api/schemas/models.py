"""What runs, and its limits."""

from collections.abc import Mapping

from pydantic import Field

from app.api.schemas import ResponseBody
from app.engine.description import HeadDescription
from app.engine.embedder import EmbedderDescription


class ModelResponse(ResponseBody):
    role: str = Field(
        description="What the model is used for; one model may have several roles.",
        examples=["embedder", "reranker", "reader"],
    )
    name: str
    architecture: str | None = Field(description="Of a model with a head; null for the embedder.")
    fingerprint: str = Field(description="Digest of all that decides its output, the runtime excepted.")
    runtime: str = Field(description="What runs it.", examples=["openvino-int8"])
    loaded: bool = Field(
        description="Whether it is in memory: the embedder from the start, another model from its first use "
        "on, unless BIFOCAL_PRELOAD is set.",
        examples=[True],
    )
    dimensions: int | None = Field(description="Length of its vectors; null for a model with a head.")
    max_tokens: int = Field(description="Most tokens of one input, special tokens included.")
    max_question_tokens: int | None = Field(
        description="Most tokens of a question read beside a passage; null for a model of single texts."
    )
    labels: list[str] = Field(description="Of a classifier or tagger, in the order of its outputs.")
    parts: Mapping[str, str | int] = Field(description="What the fingerprint is made of; of the embedder.")

    @classmethod
    def of_embedder(cls, role: str, model: EmbedderDescription) -> "ModelResponse":
        return ModelResponse(
            role=role,
            name=model.name,
            architecture=None,
            fingerprint=model.fingerprint,
            runtime=model.runtime,
            loaded=True,
            dimensions=model.dimensions,
            max_tokens=model.max_tokens,
            max_question_tokens=None,
            labels=[],
            parts=model.parts,
        )

    @classmethod
    def of_head(cls, role: str, model: HeadDescription, *, is_loaded: bool) -> "ModelResponse":
        return ModelResponse(
            role=role,
            name=model.name,
            architecture=model.architecture,
            fingerprint=model.fingerprint,
            runtime=model.runtime,
            loaded=is_loaded,
            dimensions=None,
            max_tokens=model.max_tokens,
            max_question_tokens=model.max_question_tokens,
            labels=list(model.labels),
            parts={},
        )


class LimitsResponse(ResponseBody):
    """Everything that a request may not exceed."""

    max_body_bytes: int = Field(description="Request body in bytes.")
    max_batch: int = Field(description="Documents or files per request.")
    max_document_chars: int = Field(description="One document's text in Unicode code points.")
    max_query_chars: int = Field(description="Query or text of a search in Unicode code points.")
    max_query_tokens: int = Field(description="Query in tokens; more is truncated or refused.")
    max_top_k: int = Field(description="Documents per search.")
    max_passages_per_hit: int = Field(description="Passages shown per document.")
    max_candidates: int = Field(description="Documents or passages that are reranked or read per request.")
    max_question_chars: int = Field(description="Question in Unicode code points.")
    max_answers: int = Field(description="Answers per question.")
    max_contexts: int = Field(description="Texts to answer from per request.")
    max_contexts_chars: int = Field(description="All of these texts together, in Unicode code points.")
    max_texts: int = Field(description="Texts per request to tokenize or classify.")
    max_classified_chars: int = Field(description="All texts of a request to classify, in code points.")
    max_tagged_chars: int = Field(description="All texts of a request for entities, in Unicode code points.")
    max_examples: int = Field(description="Examples to train a classifier from.")
    max_labels: int = Field(description="Labels of a classifier, or of a request to classify.")
    max_inspected_chars: int = Field(
        description="All texts of a request to tokenize or look into, in Unicode code points."
    )
    max_document_id_bytes: int = Field(description="Document id in bytes of UTF-8.")
    max_wait_s: float = Field(description="Seconds that `Prefer: wait` may ask for.")


class ModelsResponse(ResponseBody):
    models: list[ModelResponse]
    limits: LimitsResponse


class LiveResponse(ResponseBody):
    status: str = Field(description="Always `live`.", examples=["live"])


class ReadyResponse(ResponseBody):
    status: str = Field(description="Always `ready`.", examples=["ready"])
    checks: Mapping[str, str] = Field(
        description="What was looked at: the store, the bi-encoder, reranker and reader, the models of "
        "single texts, and the worker.",
        examples=[{"store": "ok", "embedder": "ok", "reading": "ok", "texts": "ok", "worker": "ok"}],
    )
