"""Loads models: settings in, objects out."""

import importlib.util
import logging
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import TypeVar

from app.engine.bi_encoder import BiEncoder
from app.engine.compiled import PREPARE, compiled_folder, read_manifest
from app.engine.embedder import Embedder
from app.engine.head_files import HeadFiles
from app.engine.model_files import BiEncoderFiles, find_bi_encoder
from app.engine.network import Network
from app.engine.runner import Runner
from app.engine.tokenizer import Tokenizer
from app.errors import ModelUnavailable
from app.settings import Settings

__all__ = ["BiEncoderFiles", "find_bi_encoder", "load_embedder", "load_tokenizer", "make_runner"]

logger = logging.getLogger(__name__)

Files = BiEncoderFiles | HeadFiles
T = TypeVar("T")


def load_embedder(settings: Settings, *, farewell_s: float = 0.0) -> Embedder:
    """Load the bi-encoder in the runtime that `settings.runtime` asks for.

    "auto" takes the compiled form when it is prepared, intact, and OpenVINO is installed; else PyTorch, and
    logs why. Torch is imported only when it is chosen.

    Args:
        farewell_s: that callers get to pass the news on, before the process ends because a call of the
            model does not return within `settings.model_limit_s`.

    Raises:
        ModelUnavailable: files missing or altered, or the runtime cannot run them; says the way out.
    """
    files = find_bi_encoder(settings.embedder, offline=settings.offline)
    return BiEncoder(
        files,
        tokenizer=load_tokenizer(files),
        network=_network(files, settings),
        settings=settings,
        farewell_s=farewell_s,
    )


def load_tokenizer(files: Files) -> Tokenizer:
    return Tokenizer(files.tokenizer_definition())


def make_runner(files: HeadFiles, settings: Settings, *, farewell_s: float = 0.0) -> Runner:
    """A runner of a head's network, in the runtime that `settings.runtime` asks for; as `load_embedder`.

    The network is loaded when it is first used; that its files are there and intact is seen to now.

    Raises:
        ModelUnavailable: files missing or altered, or no runtime for them; says the way out.
    """
    return Runner(
        partial(_loaded_network, files, settings),
        files.outputs,
        runtime=_in_runtime(files, settings, _openvino_runtime, _torch_runtime),
        pad_id=files.pad_id,
        max_tokens=files.max_tokens,
        has_segments=files.has_segments,
        settings=settings,
        farewell_s=farewell_s,
    )


def _loaded_network(files: HeadFiles, settings: Settings) -> Network:
    began = time.perf_counter()
    network = _network(files, settings)
    seconds = time.perf_counter() - began
    logger.info("model loaded name=%s runtime=%s seconds=%.2f", files.name, network.runtime, seconds)
    return network


def _network(files: Files, settings: Settings) -> Network:
    return _in_runtime(files, settings, _openvino_network, _torch_network)


def _in_runtime(
    files: Files,
    settings: Settings,
    of_openvino: Callable[[Files, Settings], T],
    of_torch: Callable[[Files, Settings], T],
) -> T:
    """What the one or the other gives, as `settings.runtime` says, and in "auto" what is possible."""
    if settings.runtime == "torch":
        return of_torch(files, settings)
    try:
        return of_openvino(files, settings)
    except ModelUnavailable as error:
        if settings.runtime == "openvino":
            raise
        logger.warning("running %s with PyTorch, which is slower: %s", files.name, error)
        return of_torch(files, settings)


def _openvino_runtime(files: Files, settings: Settings) -> str:
    return f"openvino-{_checked_precision(files, settings)} {version('openvino')}"


def _openvino_network(files: Files, settings: Settings) -> Network:
    precision = _checked_precision(files, settings)
    # Here, because a process without OpenVINO or without a compiled model runs too.
    from app.engine.openvino_network import OpenVinoNetwork  # noqa: PLC0415

    folder = compiled_folder(settings.cache, files)
    return OpenVinoNetwork(folder, threads=settings.threads, precision=precision)


def _checked_precision(files: Files, settings: Settings) -> str:
    """Of the compiled model, whose files are intact. Raises ModelUnavailable."""
    if importlib.util.find_spec("openvino") is None:
        raise ModelUnavailable("OpenVINO is not installed; run `pip install openvino`")
    manifest = read_manifest(compiled_folder(settings.cache, files))
    if manifest is None:
        raise ModelUnavailable(f"no compiled model of {files.name} in {settings.cache}; {PREPARE}")
    return str(manifest.get("precision", "int8"))


def _torch_runtime(files: Files, _: Settings) -> str:
    _refuse_without_torch(files)
    return f"torch-float32 {version('torch')}"


def _refuse_without_torch(files: Files) -> None:
    needed = "sentence_transformers" if isinstance(files, BiEncoderFiles) else "transformers"
    if importlib.util.find_spec(needed) is None:
        raise ModelUnavailable(
            f"{files.name} cannot run here: {needed} is not installed; {PREPARE} where it is, or"
            " run `pip install bifocal[models]`"
        )


def _torch_network(files: Files, settings: Settings) -> Network:
    _refuse_without_torch(files)
    # Here, because torch costs seconds and hundreds of megabytes that a compiled model does without.
    if isinstance(files, BiEncoderFiles):
        from app.engine.torch_network import TorchNetwork  # noqa: PLC0415

        return TorchNetwork(files, threads=settings.threads)
    from app.engine.torch_heads import TorchHeadNetwork  # noqa: PLC0415

    return TorchHeadNetwork(files, threads=settings.threads)
