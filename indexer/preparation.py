"""Compiles models once, so that the service can run them fast and without torch.

The compiled model is derived from the model's files and may be deleted at any time. It appears as a whole or
not at all: built in a temporary folder beside its place, then renamed.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import indexer
from app.engine.compiled import NETWORK, RECIPE, compiled_folder, read_manifest, write_manifest
from app.engine.inputs import encoder_inputs
from app.engine.models import BiEncoderFiles, find_bi_encoder, load_tokenizer
from app.errors import ModelUnavailable
from app.settings import Settings
from indexer.calibration import calibration_texts
from indexer.quantisation_request import QuantisationRequest

ProgressCallback = Callable[[str, float], None]
"""Gets (stage, share done 0..1)."""

HELD_OUT_EVERY = 10
"""Every tenth calibration text is kept out of calibration and compares the result with the original."""
LEAST_SIMILARITY = 0.98
"""Mean cosine below which a compiled model is refused. The default model reaches 0.998."""
TOOLS = ("nncf", "openvino")
"""Their versions decide the result."""
NEEDED = (*TOOLS, "torch", "transformers")
TEMPORARY = ".preparing-"
USE_TORCH = "set BIFOCAL_RUNTIME=torch to run the model as it is"


def prepare_embedder(settings: Settings, *, progress: ProgressCallback | None = None) -> Path:
    """Compile the bi-encoder into the cache unless that was done already, and return its folder.

    A damaged one, or one that other versions of the tools made, is replaced. Interrupting it leaves what was
    there before. Two processes that prepare at once do it one after the other.

    Raises:
        ModelUnavailable: files missing, tools not installed, cache not writable, or a result that is not
            faithful to the original.
    """
    progress = progress or _ignore
    progress("find", 0.0)
    files = find_bi_encoder(settings.embedder, offline=settings.offline)
    folder = compiled_folder(settings.cache, files)
    try:
        with _only_one(folder.parent):
            if not _is_current(folder):
                _build(files, folder, progress)
    except OSError as error:
        raise ModelUnavailable(
            f"cannot write to {settings.cache} ({error.strerror}); set BIFOCAL_CACHE to another folder"
        ) from error
    progress("ready", 1.0)
    return folder


def _ignore(_stage: str, _share: float) -> None:
    pass


def is_prepared(settings: Settings) -> bool:
    """Whether an intact compiled form of the bi-encoder is there, so that preparing would do nothing."""
    files = find_bi_encoder(settings.embedder, offline=settings.offline)
    return _is_current(compiled_folder(settings.cache, files))


def _is_current(folder: Path) -> bool:
    """Whether an intact compiled model is there, made by the versions of the tools that are installed."""
    try:
        manifest = read_manifest(folder)
    except ModelUnavailable:
        return False
    if manifest is None:
        return False
    tools: Mapping[str, str] = manifest["tools"]  # type: ignore[assignment]
    return all(_version(name) in (None, version) for name, version in tools.items())


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Keep other processes out, and clear away what an interrupted one left."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(f"{TEMPORARY}*"):
            shutil.rmtree(left)
        yield


def _build(files: BiEncoderFiles, folder: Path, progress: ProgressCallback) -> None:
    if missing := [name for name in NEEDED if _version(name) is None]:
        raise ModelUnavailable(
            f"{', '.join(missing)} not installed: run `pip install bifocal[models]` to prepare models, or"
            " bring a prepared cache from elsewhere"
        )
    temporary = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=folder.parent))
    try:
        made = temporary / "made"
        made.mkdir()
        request = _request(files, made / NETWORK)
        similarity = _run(request, temporary, progress)
        if not similarity >= LEAST_SIMILARITY:
            raise ModelUnavailable(
                f"the compiled form of {files.name} deviates too much from the original: mean cosine"
                f" {similarity:.3f}, at least {LEAST_SIMILARITY} is needed; {USE_TORCH}"
            )
        write_manifest(
            made,
            {
                "model": files.name,
                "parts": dict(files.parts),
                "recipe": RECIPE,
                "tools": {name: _version(name) for name in TOOLS},
                "similarity": round(similarity, 5),
            },
        )
        if folder.exists():
            folder.rename(temporary / "before")
        made.rename(folder)
    finally:
        shutil.rmtree(temporary)


def _request(files: BiEncoderFiles, network: Path) -> QuantisationRequest:
    inputs = encoder_inputs(
        calibration_texts(),
        None,
        tokenizer=load_tokenizer(files),
        prompt="",
        max_tokens=files.max_tokens,
        truncate=True,
    )
    sequences = [sequence.tolist() for sequence in inputs.sequences]
    return QuantisationRequest(
        transformer=str(files.transformer),
        pooling=files.pooling,
        sequences=[s for i, s in enumerate(sequences) if i % HELD_OUT_EVERY],
        held_out=sequences[::HELD_OUT_EVERY],
        network=str(network),
    )


def _run(request: QuantisationRequest, temporary: Path, progress: ProgressCallback) -> float:
    """Quantise in a process of its own and return the similarity it measured."""
    request_file, log_file = temporary / "request.json", temporary / "log"
    request_file.write_text(request.to_json(), encoding="utf-8")
    root = str(Path(indexer.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    similarity = float("nan")
    with (
        log_file.open("wb") as log,
        subprocess.Popen(  # noqa: S603  our own module
            [sys.executable, "-m", "indexer.quantisation", str(request_file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"},
        ) as process,
    ):
        try:
            for line in process.stdout or ():
                stage, _, share = line.rstrip("\n").partition("\t")
                if stage == "similarity":
                    similarity = float(share)
                else:
                    progress(stage, float(share))
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        last_words = log_file.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise ModelUnavailable(f"compiling failed: {' '.join(last_words) or process.returncode}; {USE_TORCH}")
    return similarity
