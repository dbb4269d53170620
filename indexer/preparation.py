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
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import indexer
from app.engine.compiled import NETWORK, RECIPE, compiled_folder, read_manifest, write_manifest
from app.engine.embedders import settings_of_second
from app.engine.head_files import HeadFiles
from app.engine.models import BiEncoderFiles, find_bi_encoder
from app.engine.roles import COMPILED, Role, models_of
from app.errors import ModelUnavailable
from app.settings import Settings
from indexer.calibration_inputs import bi_encoder_request, head_request
from indexer.quantisation_request import Precision, QuantisationRequest

ProgressCallback = Callable[[str, float], None]
"""Gets (stage, share done 0..1)."""

LEAST_SIMILARITY = 0.98
"""Mean cosine below which a compiled bi-encoder is refused. The default model reaches 0.998."""
LEAST_LIKENESS = 0.98
"""Of the outputs of a head (`indexer.likeness`): below, it is compiled without quantising anything."""
TOOLS = ("nncf", "openvino")
"""Their versions decide the result."""
NEEDED = (*TOOLS, "torch", "transformers")
TEMPORARY = ".preparing-"
USE_TORCH = "set BIFOCAL_RUNTIME=torch to run the model as it is"


def prepare(settings: Settings, *, progress: ProgressCallback | None = None) -> dict[str, Path]:
    """Compile the models of all roles into the cache unless that was done already; folders by name of model.

    Args:
        progress: is told the name of the model before the stage.

    Raises:
        ModelUnavailable: as `prepare_embedder`.
    """

    def of(name: str) -> ProgressCallback:
        return lambda stage, share: (progress or _ignore)(f"{name}: {stage}", share)

    folders = {settings.embedder: prepare_embedder(settings, progress=of(settings.embedder))}
    if settings.second_embedder:
        second = settings_of_second(settings)
        folders[second.embedder] = prepare_embedder(second, progress=of(second.embedder))
    for role in COMPILED:
        for files in models_of(role, settings):
            if files.name not in folders:  # one may have several roles
                folders[files.name] = prepare_head(files, role, settings, progress=of(files.name))
    return folders


def prepare_embedder(settings: Settings, *, progress: ProgressCallback | None = None) -> Path:
    """Compile the bi-encoder into the cache unless that was done already, and return its folder.

    A damaged one, or one that other versions of the tools made, is replaced. Interrupting it leaves what was
    there before. Two processes that prepare at once do it one after the other.

    Raises:
        ModelUnavailable: files missing, tools not installed, cache not writable, or a result that is not
            faithful to the original.
    """
    files = find_bi_encoder(settings.embedder, offline=settings.offline)

    def build(folder: Path, progress: ProgressCallback) -> None:
        def refuse(similarity: float, _precision: Precision) -> Precision | None:
            if similarity >= LEAST_SIMILARITY:
                return None
            raise ModelUnavailable(
                f"the compiled form of {files.name} deviates too much from the original: mean cosine"
                f" {similarity:.3f}, at least {LEAST_SIMILARITY} is needed; {USE_TORCH}"
            )

        made_by = {"model": files.name, "parts": dict(files.parts)}
        _build(folder, bi_encoder_request(files), made_by, progress=progress, other_precision=refuse)

    return _prepared(files, settings, build, progress or _ignore)


def prepare_head(
    files: HeadFiles, role: Role, settings: Settings, *, progress: ProgressCallback | None = None
) -> Path:
    """As `prepare_embedder`, for a model with a head. One that int8 costs too much is not quantised.

    Args:
        role: decides on which inputs it is calibrated: pairs or texts.
    """

    def build(folder: Path, progress: ProgressCallback) -> None:
        def float32_instead(likeness: float, precision: Precision) -> Precision | None:
            return "float32" if precision == "int8" and not likeness >= LEAST_LIKENESS else None

        made_by = {
            "model": files.name,
            "parts": {"weights": files.digest, "architecture": files.architecture},
        }
        request = head_request(files, role, settings)
        _build(folder, request, made_by, progress=progress, other_precision=float32_instead)

    return _prepared(files, settings, build, progress or _ignore)


def is_prepared(settings: Settings) -> bool:
    """Whether intact compiled forms of all models are there, so that preparing would do nothing."""
    names = (settings.embedder, settings.second_embedder)
    files: list[BiEncoderFiles | HeadFiles] = [
        *(find_bi_encoder(name, offline=settings.offline) for name in names if name),
        *(head for role in COMPILED for head in models_of(role, settings)),
    ]
    return all(_is_current(compiled_folder(settings.cache, each)) for each in files)


def _prepared(
    files: BiEncoderFiles | HeadFiles,
    settings: Settings,
    build: Callable[[Path, ProgressCallback], None],
    progress: ProgressCallback,
) -> Path:
    progress("find", 0.0)
    folder = compiled_folder(settings.cache, files)
    try:
        with _only_one(folder.parent):
            if not _is_current(folder):
                _check_tools()
                build(folder, progress)
    except OSError as error:
        raise ModelUnavailable(
            f"cannot write to {settings.cache} ({error.strerror}); set BIFOCAL_CACHE to another folder"
        ) from error
    progress("ready", 1.0)
    return folder


def _ignore(_stage: str, _share: float) -> None:
    pass


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


def _check_tools() -> None:
    if missing := [name for name in NEEDED if _version(name) is None]:
        raise ModelUnavailable(
            f"{', '.join(missing)} not installed: run `pip install bifocal[models]` to prepare models, or"
            " copy a prepared cache from elsewhere"
        )


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Keep other processes out, and clear away what an interrupted one left."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(f"{TEMPORARY}*"):
            shutil.rmtree(left)
        yield


def _build(
    folder: Path,
    request: QuantisationRequest,
    made_by: Mapping[str, object],
    *,
    progress: ProgressCallback,
    other_precision: Callable[[float, Precision], Precision | None],
) -> None:
    """
    Args:
        other_precision: told how alike result and original are, and the precision of the result, it gives
            another one to try; None: the result is good. It may raise.
    """
    temporary = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=folder.parent))
    try:
        made = temporary / "made"
        made.mkdir()
        request = replace(request, network=str(made / NETWORK))
        similarity = _run(request, temporary, progress)
        while better := other_precision(similarity, request.precision):
            request = replace(request, precision=better)
            similarity = _run(request, temporary, _ignore)
        write_manifest(
            made,
            {
                **made_by,
                "recipe": RECIPE,
                "tools": {name: _version(name) for name in TOOLS},
                "precision": request.precision,
                "full_precision": list(request.full_precision),
                "similarity": round(similarity, 5),
            },
        )
        if folder.exists():
            folder.rename(temporary / "before")
        made.rename(folder)
    finally:
        shutil.rmtree(temporary)


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
