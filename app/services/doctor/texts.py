"""Stored texts are what was stored, and passages are slices of them."""

from collections.abc import Iterator, Sequence

from app.domain import Collection
from app.domain.contents import content_hash
from app.domain.health import Fault, Remedy
from app.services.doctor.patient import Patient, spread
from app.storage.sqlite.examination import OutOfTime
from app.storage.sqlite.standing import LARGEST_KEY, StoredText, live_keys, stored_texts


def texts(patient: Patient) -> Iterator[Fault]:
    is_complete = True
    for collection in patient.collections:
        documents = live_keys(patient.examination, collection.key, "documents", up_to=LARGEST_KEY).live
        chosen = spread(documents, patient.thoroughness.max_rows)
        is_complete &= len(chosen) == len(documents)
        altered: list[StoredText] = []
        misplaced: list[StoredText] = []
        for stored in stored_texts(patient.examination, chosen):
            if not _is_unaltered(stored, collection, patient):
                altered.append(stored)
            elif stored.document is not None and not are_slices(stored.document.text, stored.slices):
                misplaced.append(stored)
        yield from _faults(collection, altered, misplaced)
    if not is_complete:
        raise OutOfTime


def are_slices(text: str, slices: Sequence[tuple[int, int]]) -> bool:
    """Whether passages lie inside the text, in order, and leave out nothing but white space.

    >>> are_slices("one two", [(0, 3), (4, 7)]), are_slices("one two", [(0, 3), (5, 7)])
    (True, False)
    """
    before = (0, 0)
    for start, end in slices:
        if not 0 <= start < end <= len(text) or (start, end) < before:
            return False
        if text[before[1] : start].strip():
            return False
        before = (start, max(end, before[1]))
    return not text[before[1] :].strip()


def _is_unaltered(stored: StoredText, collection: Collection, patient: Patient) -> bool:
    """A collection's own fingerprint may be what is wrong; then that of the encoder that runs decides."""
    if stored.document is None:
        return False
    fingerprints = [collection.fingerprint]
    if patient.embedder is not None:
        fingerprints.append(patient.embedder.description.fingerprint)
    return any(
        content_hash(stored.document, collection.settings.splitter, fingerprint=each) == stored.content_hash
        for each in fingerprints
    )


def _faults(
    collection: Collection, altered: Sequence[StoredText], misplaced: Sequence[StoredText]
) -> Iterator[Fault]:
    where = f"collection {collection.name}"
    if altered:
        yield Fault(
            f"the texts of {len(altered)} documents are not what was stored: {_named(altered)}; "
            "put these documents again, or restore a backup",
            where,
            collection_key=collection.key,
        )
    if misplaced:
        yield Fault(
            f"the passages of {len(misplaced)} documents are not slices of their texts: {_named(misplaced)}",
            where,
            Remedy.DOCUMENTS,
            collection_key=collection.key,
            keys=tuple(stored.key for stored in misplaced),
        )


def _named(stored: Sequence[StoredText]) -> str:
    return ", ".join(repr(each.id) for each in stored[:3]) + (" and others" if len(stored) > 3 else "")
