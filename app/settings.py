"""Configuration: one frozen object, read once from `BIFOCAL_*` variables and passed down."""

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "BIFOCAL_"
ROWS_FILE, INDEX_FOLDER = "bifocal.db", "indexes"
"""In the home."""


class Settings(BaseSettings):
    """Every field is a variable: `max_batch_tokens` is `BIFOCAL_MAX_BATCH_TOKENS`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    home: Path = Field(Path("data"), description="Folder of the store: database and index files.")
    cache: Path = Field(
        Path.home() / ".cache" / "bifocal",
        description="Folder of compiled models; may be deleted at any time.",
    )
    host: str = Field("127.0.0.1", description="Address the service listens on.")
    port: int = Field(8000, ge=0, le=65535, description="Port the service listens on; 0 picks a free one.")
    insecure: bool = Field(
        False,
        description="Listen beyond this machine without a key: whoever reaches the port may change all.",
    )
    root_path: str = Field("", description="Prefix under which a reverse proxy publishes the service.")
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Origins, separated by commas, whose web pages may call the service; * allows all.",
    )

    api_key: SecretStr = Field(
        SecretStr(""), description="Key that commands send to a running service: `evaluate --url`."
    )
    rate_limit: float = Field(
        0.0,
        ge=0,
        description="Requests a second of each key, or without keys of each address, on average; 0: any.",
    )
    rate_burst: int = Field(50, ge=1, description="Requests that each may make at once under rate_limit.")

    embedder: str = Field(
        "sentence-transformers/all-MiniLM-L6-v2",
        description="Bi-encoder: a model name or a local folder in sentence-transformers layout.",
    )
    second_embedder: str = Field(
        "",
        description="Bi-encoder that runs beside it, for collections re-indexed from one to the other: a "
        "name or folder; empty: none.",
    )
    models: Path = Field(
        Path(__file__).parents[1] / "models", description="Folder of the models that this project trained."
    )
    reranker: str = Field(
        "",
        description="Cross-encoder that looks again at the best passages: a name or folder; empty: the joint "
        "model of the models folder, if it is there.",
    )
    reader: str = Field(
        "", description="Model that finds answers in passages; empty: the joint model, as for the reranker."
    )
    tagger: str = Field("", description="Model that finds entities; empty: the one of the models folder.")
    sequence_models: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Fine-tuned classifiers of texts, separated by commas; empty: the shipped ones."
    )
    lens: str = Field("", description="Model that fills masked words; empty: the one of the models folder.")
    preload: bool = Field(
        False,
        description="Load all models at the start, not only the bi-encoder and the others when first used.",
    )
    runtime: Literal["auto", "openvino", "torch"] = Field(
        "auto", description="auto uses the compiled model when it is prepared and OpenVINO is installed."
    )
    threads: int = Field(0, ge=0, description="Threads for model inference; 0 means all cores.")
    offline: bool = Field(True, description="Never ask a model hub; models must be on this machine.")
    max_batch_tokens: int = Field(2048, ge=64, description="Tokens per model call, padding included.")
    max_queue: int = Field(
        64, ge=1, description="Searches under way, and texts waiting for the model, before requests get 503."
    )
    model_limit_s: float = Field(
        60.0,
        ge=1,
        description="Seconds that one call of a model may take; then the process ends, to be started again.",
    )

    max_body_bytes: int = Field(64 * 2**20, ge=1024, description="Largest request body.")
    max_batch: int = Field(10_000, ge=1, description="Documents or files per request.")
    max_document_chars: int = Field(10_000_000, ge=1, description="Characters of one document's text.")
    file_timeout_s: float = Field(120.0, gt=0, description="Seconds to read one file before it is rejected.")
    file_memory_bytes: int = Field(2 * 2**30, ge=2**28, description="Memory for reading one file.")
    wait_s: float = Field(
        10.0, ge=0, le=60, description="Seconds that single-document writes wait for their job."
    )

    lease_s: float = Field(15.0, gt=0, description="Seconds until a silent worker's job is taken over.")
    compact_tail: int = Field(
        10_000, ge=1, description="Vectors outside the base file before a new base is built."
    )
    exact_limit: int = Field(50_000, ge=0, description="Vectors above which the base becomes approximate.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe log line."
    )
    log_format: Literal["text", "json"] = Field("text", description="Form of log lines.")

    @property
    def rows_file(self) -> Path:
        return self.home / ROWS_FILE

    @property
    def index_folder(self) -> Path:
        return self.home / INDEX_FOLDER

    @field_validator("root_path")
    @classmethod
    def _without_last_slash(cls, root_path: str) -> str:
        path = root_path.rstrip("/")
        if path and not path.startswith("/"):
            raise ValueError("must begin with a slash, such as /search")
        return path

    @field_validator("cors_origins", "sequence_models", mode="before")
    @classmethod
    def _separated_by_commas(cls, names: object) -> object:
        return [n.strip() for n in names.split(",") if n.strip()] if isinstance(names, str) else names

    @classmethod
    def from_environment(cls) -> "Settings":
        """Read the environment; an unknown `BIFOCAL_*` variable is an error that names it.

        Raises:
            ValueError: an unknown or invalid variable.
        """
        known = {PREFIX + name.upper() for name in cls.model_fields}
        unknown = sorted(k for k in os.environ if k.upper().startswith(PREFIX) and k.upper() not in known)
        unknown = [k for k in unknown if k.upper() not in NOT_SETTINGS]
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        return cls()


NOT_SETTINGS = frozenset({"BIFOCAL_DATA"})
"""BIFOCAL_DATA: where tests and benchmarks find the public data sets; no setting of the service."""
