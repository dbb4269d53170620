"""Loads models: settings in, objects out."""

import importlib.util
import logging

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

__all__ = ["BiEncoderFiles", "find_bi_encoder", "load_embedder", "load_runner", "load_tokenizer"]

logger = logging.getLogger(__name__)


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


def load_tokenizer(files: BiEncoderFiles | HeadFiles) -> Tokenizer:
    return Tokenizer(files.tokenizer_definition())


def load_runner(files: HeadFiles, settings: Settings, *, farewell_s: float = 0.0) -> Runner:
    """Load the network of a head in the runtime that `settings.runtime` asks for; as `load_embedder`."""
    return Runner(
        _network(files, settings),
        files.outputs,
        pad_id=files.pad_id,
        max_tokens=files.max_tokens,
        has_segments=files.has_segments,
        settings=settings,
        farewell_s=farewell_s,
    )


def _network(files: BiEncoderFiles | HeadFiles, settings: Settings) -> Network:
    if settings.runtime == "torch":
        return _torch_network(files, settings)
    try:
        return _openvino_network(files, settings)
    except ModelUnavailable as error:
        if settings.runtime == "openvino":
            raise
        logger.warning("running %s with PyTorch, which is slower: %s", files.name, error)
        return _torch_network(files, settings)


def _openvino_network(files: BiEncoderFiles | HeadFiles, settings: Settings) -> Network:
    if importlib.util.find_spec("openvino") is None:
        raise ModelUnavailable("OpenVINO is not installed; run `pip install openvino`")
    folder = compiled_folder(settings.cache, files)
    manifest = read_manifest(folder)
    if manifest is None:
        raise ModelUnavailable(f"no compiled model of {files.name} in {settings.cache}; {PREPARE}")
    # Here, because a process without OpenVINO or without a compiled model runs too.
    from app.engine.openvino_network import OpenVinoNetwork  # noqa: PLC0415

    precision = str(manifest.get("precision", "int8"))
    return OpenVinoNetwork(folder, threads=settings.threads, precision=precision)


def _torch_network(files: BiEncoderFiles | HeadFiles, settings: Settings) -> Network:
    needed = "sentence_transformers" if isinstance(files, BiEncoderFiles) else "transformers"
    if importlib.util.find_spec(needed) is None:
        raise ModelUnavailable(
            f"{files.name} cannot run here: {needed} is not installed; {PREPARE} where it is, or"
            " run `pip install bifocal[models]`"
        )
    # Here, because torch costs seconds and hundreds of megabytes that a compiled model does without.
    if isinstance(files, BiEncoderFiles):
        from app.engine.torch_network import TorchNetwork  # noqa: PLC0415

        return TorchNetwork(files, threads=settings.threads)
    from app.engine.torch_heads import TorchHeadNetwork  # noqa: PLC0415

    return TorchHeadNetwork(files, threads=settings.threads)
