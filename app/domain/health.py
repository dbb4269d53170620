"""What an examination of a store finds: checks by name, their faults, and what would mend each."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Status = Literal["ok", "warning", "problem"]
"""A warning is nothing that answers suffer from now."""


class Remedy(StrEnum):
    """What a repair does; nothing that cannot be made again is ever deleted."""

    COUNTS = "count documents and passages anew"
    BASE = "build the base file anew from the rows"
    WORDS = "build the word index anew from the rows"
    DOCUMENTS = "split and encode these documents anew from their stored texts"
    METADATA = "index the metadata of all documents anew"
    ORPHANS = "delete passages and vectors that belong to no document"
    FOLDER = "delete the folder"
    JOB = "give the job back to the queue"


@dataclass(frozen=True, slots=True)
class Fault:
    what: str
    where: str
    remedy: Remedy | None = None
    """None: no repair can mend it; then `what` says what to do."""
    is_warning: bool = False
    collection_key: int = 0
    view: Literal["passages", "documents"] = "passages"
    """Whose base file."""
    keys: tuple[int, ...] = ()
    """Of the documents concerned."""


@dataclass(frozen=True, slots=True)
class Checked:
    name: str
    looked_at: str
    """What was examined, and how much of it."""
    faults: tuple[Fault, ...] = ()
    is_complete: bool = True
    """False: there was no time for all of it."""

    @property
    def status(self) -> Status:
        if not self.faults:
            return "ok"
        return "warning" if all(fault.is_warning for fault in self.faults) else "problem"


def worst(checks: "tuple[Checked, ...]") -> Status:
    """
    >>> worst(())
    'ok'
    """
    found = {check.status for check in checks}
    return "problem" if "problem" in found else "warning" if "warning" in found else "ok"
