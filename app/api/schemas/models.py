"""What runs, and its limits."""

from collections.abc import Mapping

from pydantic import Field

from app.api.schemas import ResponseBody


class ModelResponse(ResponseBody):
    role: str = Field(description="What the model is used for.", examples=["embedder"])
    name: str
    fingerprint: str = Field(description="Digest of all that decides its output, the runtime excepted.")
    runtime: str = Field(description="What runs it.", examples=["openvino-int8"])
    dimensions: int = Field(description="Length of its vectors.")
    max_tokens: int = Field(description="Most tokens of one text, special tokens included.")
    parts: Mapping[str, str | int] = Field(description="What the fingerprint is made of.")


class LimitsResponse(ResponseBody):
    """Everything that a request may not exceed."""

    max_body_bytes: int = Field(description="Request body in bytes.")
    max_batch: int = Field(description="Documents or files per request.")
    max_document_chars: int = Field(description="One document's text in Unicode code points.")
    max_query_chars: int = Field(description="Query or text of a search in Unicode code points.")
    max_query_tokens: int = Field(description="Query in tokens; more is truncated or refused.")
    max_top_k: int = Field(description="Documents per search.")
    max_passages_per_hit: int = Field(description="Passages shown per document.")
    max_texts: int = Field(description="Texts per request to tokenize or classify.")
    max_classified_chars: int = Field(description="All texts of a request to classify, in code points.")
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
        description="What was looked at: the store, the bi-encoder and the worker.",
        examples=[{"store": "ok", "embedder": "ok", "worker": "ok"}],
    )
