"""Stored vectors are those that the texts have."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.domain import Collection, View
from app.domain.health import Fault, Remedy
from app.engine.document_vectors import document_vector
from app.services.doctor.patient import VIEWS, Patient, spread
from app.storage.embedded.bases import folder_of, published_keys, published_vectors
from app.storage.rows import Generation, Keys
from app.storage.sqlite.examination import OutOfTime
from app.storage.sqlite.standing import (
    LARGEST_KEY,
    StoredVectors,
    document_parts,
    live_keys,
    stored_vectors,
)
from app.storage.sqlite.values import LENGTH_TOLERANCE

LEAST_COSINE = 0.95
"""Of a passage encoded anew with its stored vector. Runtimes differ by up to 0.02, texts by far more."""
LEAST_OWN_COSINE = 0.99
"""Of a document's vector with the one that its passages' vectors give: only float16 is between them."""
TEXTS_PER_CALL = 16
"""Few, so that searches come in between."""
MOST_PASSAGES = 1_000
"""Of a document whose own vector is made anew."""


def vectors(patient: Patient) -> Iterator[Fault]:
    """Every one is of length 1, and in an intact base it is the same as in the rows."""
    is_complete = True
    for collection in patient.collections:
        for view in VIEWS:
            keys = live_keys(patient.examination, collection.key, view, up_to=LARGEST_KEY).live
            chosen = spread(keys, patient.thoroughness.max_rows)
            is_complete &= len(chosen) == len(keys)
            yield from _of_view(patient, collection, view, chosen)
    if not is_complete:
        raise OutOfTime


def encoding(patient: Patient) -> Iterator[Fault]:
    """Encode a sample of passages anew, and make the vectors of their documents from those of passages."""
    if patient.embedder is None:
        return
    fitting = [c for c in patient.collections if c.fingerprint == patient.embedder.description.fingerprint]
    sample = patient.thoroughness.sample
    for i, collection in enumerate(fitting):
        n_wanted = sample // len(fitting) + int(i < sample % len(fitting))
        keys = live_keys(patient.examination, collection.key, "passages", up_to=LARGEST_KEY).live
        wrong = _encoded_otherwise(patient, spread(keys, n_wanted) if n_wanted else keys[:0])
        if wrong:
            yield _fault(
                f"of {len(wrong)} documents the stored vectors are not those of their texts",
                collection,
                wrong,
            )


def _encoded_otherwise(patient: Patient, keys: Keys) -> list[int]:
    """Keys of the documents."""
    assert patient.embedder is not None
    dimensions = patient.embedder.description.dimensions
    wrong: set[int] = set()
    owners: set[int] = set()
    for stored in stored_vectors(patient.examination, "passages", keys, dimensions=dimensions):
        for start in range(0, len(stored.keys), TEXTS_PER_CALL):
            block = slice(start, start + TEXTS_PER_CALL)
            passages = patient.rows.passages_by_key(stored.keys[block].tolist())
            there = [i for i in range(len(stored.keys))[block] if int(stored.keys[i]) in passages]
            quoted = [passages[int(stored.keys[i])] for i in there]
            readable = [
                (i, passage) for i, passage in zip(there, quoted, strict=True) if passage.text.strip()
            ]
            wrong |= {passage.document_key for passage in quoted if not passage.text.strip()}
            if not readable:
                continue
            again = patient.embedder.encode_documents(
                [passage.text for _, passage in readable], titles=[passage.title for _, passage in readable]
            ).vectors
            cosines = np.einsum(
                "nd,nd->n", again, stored.vectors[[i for i, _ in readable]].astype(np.float32)
            )
            for (_, passage), cosine in zip(readable, cosines, strict=True):
                owners.add(passage.document_key)
                if not cosine >= LEAST_COSINE:
                    wrong.add(passage.document_key)
    return sorted(wrong | {key for key in owners if not _is_made_of_passages(patient, key)})


def _is_made_of_passages(patient: Patient, document_key: int) -> bool:
    parts = document_parts(patient.examination, document_key, max_passages=MOST_PASSAGES)
    if parts is None:
        return True
    n_tokens, passages, own = parts
    made = document_vector(passages.astype(np.float32), n_tokens)
    return bool(np.dot(made, own[0].astype(np.float32)) >= LEAST_OWN_COSINE)


def _of_view(patient: Patient, collection: Collection, view: View, keys: Keys) -> Iterator[Fault]:
    base = _IntactBase.of(patient, collection, view)
    odd: set[int] = set()
    other: set[int] = set()
    for stored in stored_vectors(patient.examination, view, keys):
        squares = np.einsum("nd,nd->n", stored.vectors, stored.vectors, dtype=np.float32)
        is_odd = ~(np.abs(np.sqrt(squares) - 1) <= LENGTH_TOLERANCE)
        odd |= set(stored.document_keys[is_odd].tolist())
        if base is not None:
            other |= set(stored.document_keys[base.differs(stored)].tolist())
    if odd:
        yield _fault(f"vectors of {len(odd)} documents have not length 1", collection, sorted(odd))
    if other - odd:
        wrong = sorted(other - odd)
        yield _fault(
            f"vectors of {len(wrong)} documents are not those of the base file, which is intact",
            collection,
            wrong,
        )


class _IntactBase:
    """A base of which every byte was found to be what was published."""

    def __init__(self, keys: Keys, vectors: NDArray[np.uint16]) -> None:
        self._keys = keys
        self._vectors = vectors

    @classmethod
    def of(cls, patient: Patient, collection: Collection, view: View) -> "_IntactBase | None":
        generation = patient.rows.generation(collection.key, view)
        if generation is None or generation.checksum not in patient.intact_bases or not generation.n_vectors:
            return None
        try:
            return cls(*_mapped(patient, generation))
        except OSError:  # replaced meanwhile
            return None

    def differs(self, stored: StoredVectors) -> NDArray[np.bool_]:
        """Which of them the base has otherwise; those that it does not have are not among them."""
        places = np.minimum(np.searchsorted(self._keys, stored.keys), len(self._keys) - 1)
        is_there = self._keys[places] == stored.keys
        own = stored.vectors.view(np.uint16)
        if own.shape[1] != self._vectors.shape[1]:
            return np.asarray(is_there)
        differing: NDArray[np.bool_] = np.any(own != self._vectors[places], axis=1)
        return np.asarray(is_there & differing, np.bool_)


def _mapped(patient: Patient, generation: Generation) -> tuple[Keys, NDArray[np.uint16]]:
    folder = folder_of(patient.settings.index_folder, generation)
    mapped = published_vectors(folder, n_vectors=generation.n_vectors)
    return published_keys(folder), mapped.view(np.uint16)


def _fault(what: str, collection: Collection, document_keys: list[int]) -> Fault:
    return Fault(
        what,
        f"collection {collection.name}",
        Remedy.DOCUMENTS,
        collection_key=collection.key,
        keys=tuple(document_keys),
    )
