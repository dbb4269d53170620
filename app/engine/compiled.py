"""Compiled models on disk: where they are, what made them, and whether they are intact.

`indexer.preparation` writes them; the service only reads. A folder is complete once its manifest exists,
because it appears by renaming a finished folder.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from app.engine.head_files import HeadFiles
from app.engine.model_files import BiEncoderFiles
from app.errors import ModelUnavailable

RECIPE = 1
"""Raised whenever the same model files and tools would be compiled differently."""
MANIFEST = "manifest.json"
NETWORK = "network.xml"
WEIGHTS = "network.bin"
PREPARE = "run `bifocal models prepare`"


def compiled_folder(cache: Path, files: BiEncoderFiles | HeadFiles) -> Path:
    """Where the compiled form of a model lies or would lie; other weights, pooling or heads have others."""
    if isinstance(files, BiEncoderFiles):
        made_from = json.dumps([files.weights_digest, files.pooling, files.max_tokens, RECIPE])
    else:
        made_from = json.dumps(
            [files.digest, files.architecture, files.max_tokens, list(files.full_precision), RECIPE]
        )
    name = files.name.rstrip("/").rpartition("/")[2]
    return cache / "compiled" / f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:16]}"


def read_manifest(folder: Path) -> Mapping[str, object] | None:
    """What made the compiled model; None where none is prepared.

    Raises:
        ModelUnavailable: a file is missing, cut short or altered.
    """
    if not folder.is_dir():
        return None
    try:
        manifest: dict[str, object] = json.loads((folder / MANIFEST).read_bytes())
        expected = dict(manifest["files"])  # type: ignore[call-overload]
        intact = expected.keys() == {NETWORK, WEIGHTS} and all(
            _digest(folder / name) == digest for name, digest in expected.items()
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelUnavailable(f"the compiled model in {folder} is damaged ({error}); {PREPARE}") from error
    if not intact:
        raise ModelUnavailable(f"the compiled model in {folder} is damaged (a checksum is wrong); {PREPARE}")
    return manifest


def write_manifest(folder: Path, made_by: Mapping[str, object]) -> None:
    """Record what made the files in the folder, and their checksums."""
    checksums = {name: _digest(folder / name) for name in (NETWORK, WEIGHTS)}
    text = json.dumps({**made_by, "files": checksums}, indent=2, sort_keys=True)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
