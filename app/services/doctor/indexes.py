"""Index files are what was written, and have what the rows have."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from app.domain import Collection, View
from app.domain.health import Fault, Remedy
from app.errors import StorageDamaged
from app.services.doctor.patient import VIEWS, Patient
from app.storage.embedded.bases import damages, folder_of, published_keys
from app.storage.embedded.publication import UNFINISHED
from app.storage.lexical.index import FOLDER as WORDS
from app.storage.lexical.standing import Standing, standing
from app.storage.rows import Generation
from app.storage.sqlite.examination import OutOfTime
from app.storage.sqlite.standing import LARGEST_KEY, live_keys

BASE_FOLDER = re.compile(rf"({'|'.join(VIEWS)})-\d+")


def bases(patient: Patient) -> Iterator[Fault]:
    """Files of every base against its manifest, and the manifest against the rows."""
    max_bytes = patient.thoroughness.max_digest_bytes
    is_complete = True
    for collection, view, generation in _generations(patient):
        patient.examination.require_time()
        folder = folder_of(patient.settings.index_folder, generation)
        found = damages(folder, generation, max_bytes=max_bytes)
        if found and patient.rows.generation(collection.key, view) != generation:
            continue  # replaced meanwhile
        for what in found:
            yield _base_fault(what, collection, view)
        is_whole = all(path.stat().st_size <= max_bytes for path in folder.glob("*"))
        is_complete &= is_whole
        if is_whole and not found:
            patient.intact_bases.add(generation.checksum)
    if not is_complete:
        raise OutOfTime


def base_counts(patient: Patient) -> Iterator[Fault]:
    """A base without what was deleted since has exactly the keys that the rows have up to its last one."""
    for collection, view, generation in _generations(patient):
        try:
            keys = published_keys(folder_of(patient.settings.index_folder, generation))
        except (OSError, ValueError):
            continue  # said by `bases`
        rows = live_keys(patient.examination, collection.key, view, up_to=generation.max_key)
        if rows.checksum != generation.checksum:
            continue  # replaced meanwhile
        kept = np.setdiff1d(keys, rows.dead)
        n_missing = len(np.setdiff1d(rows.live, kept))
        n_extra = len(np.setdiff1d(kept, rows.live))
        if len(keys) != generation.n_vectors:
            what = f"the base file has {len(keys)} keys, and {generation.n_vectors} on record"
            yield _base_fault(what, collection, view)
        elif n_missing or n_extra:
            yield _base_fault(
                f"the base file lacks {n_missing} of the {len(rows.live)} vectors of the rows, and has "
                f"{n_extra} that these do not have",
                collection,
                view,
            )


def words(patient: Patient) -> Iterator[Fault]:
    """Files of every word index against their checksums, and their entries against the rows."""
    for collection in patient.collections:
        patient.examination.require_time()
        directory = patient.settings.index_folder / str(collection.key) / WORDS
        try:
            found = standing(directory)
        except StorageDamaged as error:
            yield _word_fault(f"{error}", collection)
            continue
        if found is None:
            yield from _without_words(patient, collection, directory)
        else:
            yield from _word_counts(patient, collection, found)


def folders(patient: Patient) -> Iterator[Fault]:
    """What lies among the files of indexes and belongs to none. Folders first: a new collection has none."""
    present = (
        sorted(patient.settings.index_folder.iterdir()) if patient.settings.index_folder.is_dir() else []
    )
    known = patient.examination.collection_keys()
    for path in present:
        if not (path.is_dir() and path.name.isascii() and path.name.isdecimal()):
            yield Fault("this is nothing of Bifocal's; it is left alone", str(path), is_warning=True)
        elif int(path.name) not in known:
            what = f"no collection has the key {path.name}"
            yield Fault(what, str(path), Remedy.FOLDER, is_warning=True)
        else:
            yield from _inside(patient, path)


def _inside(patient: Patient, folder: Path) -> Iterator[Fault]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(UNFINISHED):
            if not patient.is_worked_on:  # else one may be under way
                yield Fault("a base was left unfinished", str(path), Remedy.FOLDER, is_warning=True)
        elif path.name != WORDS and not BASE_FOLDER.fullmatch(path.name):
            yield Fault("this is nothing of Bifocal's; it is left alone", str(path), is_warning=True)


def _generations(patient: Patient) -> Iterator[tuple[Collection, View, Generation]]:
    for collection in patient.collections:
        for view in VIEWS:
            generation = patient.rows.generation(collection.key, view)
            if generation is not None:
                yield collection, view, generation


def _without_words(patient: Patient, collection: Collection, directory: Path) -> Iterator[Fault]:
    """A running worker makes one as soon as there is anything to put in."""
    n_passages = len(live_keys(patient.examination, collection.key, "passages", up_to=LARGEST_KEY).live)
    if n_passages and not patient.is_worked_on:
        what = f"there is no word index of its {n_passages} passages in {directory} that this version reads"
        yield _word_fault(what, collection)


def _word_counts(patient: Patient, collection: Collection, found: Standing) -> Iterator[Fault]:
    """Passages up to the position of the last commit: those that live, and those that died after it."""
    position = found.position
    rows = live_keys(
        patient.examination, collection.key, "passages", up_to=position.key, sequence=position.sequence
    )
    if not rows.is_complete:
        if not patient.is_worked_on:
            yield _word_fault("the word index is older than the deletions that are on record", collection)
        return
    n_expected = len(rows.live) + int((rows.dead <= position.key).sum())
    if n_expected != found.n_entries:
        what = f"the word index has {found.n_entries} passages where the rows have {n_expected}"
        yield _word_fault(what, collection)


def _base_fault(what: str, collection: Collection, view: View) -> Fault:
    return Fault(
        what,
        f"collection {collection.name}, {view}",
        Remedy.BASE,
        collection_key=collection.key,
        view=view,
    )


def _word_fault(what: str, collection: Collection) -> Fault:
    return Fault(what, f"collection {collection.name}, words", Remedy.WORDS, collection_key=collection.key)
