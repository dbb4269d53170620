"""The files of a data set: folders with one file per split, or single files."""

from collections.abc import Sequence
from pathlib import Path

from app.errors import BadFile, InvalidInput
from indexer.training.prepared import Splits
from indexer.training.request import TrainingRequest

NAMES = {"train": ("train",), "validation": ("validation", "valid", "dev"), "test": ("test",)}


def find_splits(request: TrainingRequest, *, suffixes: Sequence[str]) -> Splits:
    """Every folder and file of the request adds to what is trained on; validation and test come from the
    request or from the first folder that has them.

    Args:
        suffixes: of files of this task, such as ".jsonl"; each may end in ".gz", too.

    Raises:
        InvalidInput: nothing was given to train on.
        BadFile: a path is missing, or a folder has no training split.
    """
    if not request.paths:
        raise InvalidInput(
            "--data is missing: a folder with train, validation and test, or files to train on"
        )
    train: list[Path] = []
    found: dict[str, Path] = {}
    for path in request.paths:
        if path.is_file():
            train.append(path)
            continue
        if not path.is_dir():
            raise BadFile(f"{path} does not exist")
        train.append(_required(path, suffixes))
        for split in ("validation", "test"):
            file = split_file(path, split, suffixes=suffixes)
            if file is not None:
                found.setdefault(split, file)
    return Splits(
        train=train,
        validation=_given(request.validation) or found.get("validation"),
        test=_given(request.test) or found.get("test"),
    )


def split_file(folder: Path, split: str, *, suffixes: Sequence[str]) -> Path | None:
    """
    Raises:
        BadFile: several files could be meant.
    """
    files = sorted(
        path
        for name in NAMES[split]
        for suffix in suffixes
        for ending in ("", ".gz")
        for path in folder.glob(f"{name}*{suffix}{ending}")
        if path.name.partition(".")[0] == name or path.name.startswith(f"{name}-")
    )
    if len(files) > 1:
        named = ", ".join(file.name for file in files)
        raise BadFile(f"{folder} has several files for {split}: {named}; name the one meant")
    return files[0] if files else None


def _required(folder: Path, suffixes: Sequence[str]) -> Path:
    file = split_file(folder, "train", suffixes=suffixes)
    if file is None:
        raise BadFile(f"{folder} has no file to train on; expected train{' or train'.join(suffixes)} (.gz)")
    return file


def _given(path: Path | None) -> Path | None:
    if path is not None and not path.is_file():
        raise BadFile(f"{path} does not exist")
    return path
