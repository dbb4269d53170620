"""What clients sent and what was acknowledged to them: the truth that the store is compared with."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

Text = str | None
"""None: the document is not there."""


@dataclass(slots=True)
class Entry:
    """One document. Its writes are sent one after the other."""

    acknowledged: Text = None
    doubtful: list[Text] = field(default_factory=list)
    """Sent after what was acknowledged last, and not answered: each may have happened, in this order."""
    texts: list[str] = field(default_factory=list)
    """All that were ever sent."""
    is_visible: bool = True
    """Whether searches must show what was acknowledged: not before a job is done."""
    n_changes: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """One document at a moment."""

    text: Text
    is_certain: bool
    """Searches must show exactly this."""
    n_changes: int


class Ledger:
    """Safe to use from any thread."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._lock = Lock()
        self.n_writes = 0
        self.n_deletes = 0

    @property
    def n_acknowledged(self) -> int:
        return self.n_writes + self.n_deletes

    def begin(self, document_id: str, text: Text) -> None:
        """Before it is sent."""
        with self._lock:
            entry = self._entries.setdefault(document_id, Entry())
            entry.doubtful.append(text)
            entry.n_changes += 1
            if text is not None:
                entry.texts.append(text)

    def acknowledge(self, document_id: str, text: Text, *, is_visible: bool) -> None:
        """What was begun last: it was answered with success."""
        with self._lock:
            entry = self._entries[document_id]
            entry.acknowledged = text
            entry.doubtful.clear()
            entry.is_visible = is_visible
            entry.n_changes += 1
            self.n_writes += text is not None
            self.n_deletes += text is None

    def settle(self, document_id: str, found: Text) -> None:
        """All jobs are done and this is stored: from now on it must stay."""
        with self._lock:
            entry = self._entries[document_id]
            entry.acknowledged = found
            entry.doubtful.clear()
            entry.is_visible = True

    def ids(self) -> list[str]:
        with self._lock:
            return sorted(self._entries)

    def view(self, document_id: str) -> View:
        with self._lock:
            entry = self._entries[document_id]
            is_certain = entry.is_visible and not entry.doubtful
            return View(entry.acknowledged, is_certain, entry.n_changes)

    def texts(self, document_id: str) -> list[str]:
        """All that were ever sent under that id, oldest first."""
        with self._lock:
            entry = self._entries.get(document_id)
            return [] if entry is None else list(entry.texts)

    def judge(self, document_id: str, found: Text) -> Literal["right", "lost", "wrong"]:
        """Of what is stored now that nothing is under way.

        Lost: an acknowledged write that is not there, or a deleted document that is there again.
        Wrong: a text that cannot be.
        """
        with self._lock:
            entry = self._entries[document_id]
            if found == entry.acknowledged or found in entry.doubtful:
                return "right"
            return "lost" if found is None or found in entry.texts else "wrong"
