"""What was retrieved, with the rows behind it: documents with their best passages."""

from collections.abc import Sequence

import numpy as np

from app.domain import Hit, Offsets, PassageHit, StoredPassage, Utf16
from app.engine.offsets import utf16_offsets
from app.services.candidates import Retrieved, Scored
from app.storage.rows import Rows


def passage_hits(
    retrieved: Retrieved, rows: Rows, *, passages_per_hit: int, offsets: Offsets = "code_points"
) -> tuple[Sequence[Hit], int]:
    """(hits, number of documents that were deleted or replaced since they were retrieved)."""
    documents, passages = retrieved.documents, retrieved.passages
    is_fused = retrieved.mode == "hybrid"
    places: dict[int, list[int]] = {key: [] for key in documents.keys.tolist()}
    for place, document_key in enumerate(passages.document_keys.tolist()):
        if document_key in places and len(places[document_key]) < passages_per_hit:
            places[document_key].append(place)
    stored = rows.passages_by_key(
        [int(passages.keys[place]) for of_document in places.values() for place in of_document],
        with_utf16=offsets == "utf16",
    )
    hits = []
    for at, of_document in enumerate(places.values()):
        shown = [
            (stored[key], _passage_hit(stored[key], passages, place, is_fused=is_fused))
            for place in of_document
            if (key := int(passages.keys[place])) in stored
        ]
        if shown:
            owner = shown[0][0]
            hits.append(
                Hit(
                    document_id=owner.document_id,
                    title=owner.title,
                    metadata=owner.metadata,
                    score=float(documents.score[at]),
                    similarity=_known(documents.dense[at]),
                    lexical=_known(documents.lexical[at]),
                    fused=float(documents.score[at]) if is_fused else None,
                    passages=tuple(hit for _, hit in shown),
                )
            )
    return hits, len(places) - len(hits)


def utf16_within(passage: PassageHit, start: int, end: int) -> Utf16 | None:
    """The text's places `start` and `end`, in code points and inside the passage, in UTF-16 code units; None
    where the passage's own are not known."""
    if passage.utf16 is None:
        return None
    places = utf16_offsets(passage.text, [start - passage.start, end - passage.start]) + passage.utf16.start
    return Utf16(*places.tolist())


def _passage_hit(stored: StoredPassage, passages: Scored, place: int, *, is_fused: bool) -> PassageHit:
    return PassageHit(
        start=stored.passage.start,
        end=stored.passage.end,
        text=stored.text,
        page=stored.passage.page,
        similarity=_known(passages.dense[place]),
        lexical=_known(passages.lexical[place]),
        fused=float(passages.score[place]) if is_fused else None,
        utf16=stored.utf16,
    )


def _known(score: float) -> float | None:
    return None if np.isnan(score) else float(score)
