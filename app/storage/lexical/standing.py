"""How far the files of a word index have come, for comparing them with the rows."""

from dataclasses import dataclass
from pathlib import Path

from app.errors import StorageDamaged
from app.storage.lexical.files import Position, current_folder, read_position
from app.storage.lexical.reader import open_verified


@dataclass(frozen=True, slots=True)
class Standing:
    position: Position
    n_entries: int
    """Passages in the last commit that are not deleted in it."""


def standing(directory: Path) -> Standing | None:
    """Every byte of the files is read. None: no folder is in use, or another version's analysis filled it.

    Raises:
        StorageDamaged: the files are not what was written.
    """
    folder = current_folder(directory)
    if folder is None:
        return None
    index = open_verified(folder)
    try:
        index.reload()
    except (OSError, ValueError) as error:
        raise StorageDamaged(f"the word index in {folder} cannot be read: {error}") from error
    searcher = index.searcher()
    position = read_position(searcher, index.schema)
    n_markers = searcher.num_docs and int(position != Position())
    return Standing(position, searcher.num_docs - n_markers)
