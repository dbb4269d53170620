"""Whether a store that was killed and started again is what its clients were told."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import numpy as np

from app.domain import Collection
from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.embedded.dense import VIEWS
from app.storage.rows import Keys
from app.storage.sqlite import SqliteRows
from tests.crash.installation import Installation
from tests.crash.ledger import Ledger
from tests.crash.searching import MODES, search, untrue_passages
from tests.crash.writing import COLLECTION, COMMON
from tests.storage.consistency import assert_sound

DONE_WITHIN_S = 60.0
EVERYTHING = 1_000_000


def faults_of(installation: Installation, ledger: Ledger, ids: Sequence[str]) -> list[str]:
    """Empty if all is well. Waits for the jobs, and settles what was doubtful by what is there.

    `ids` are the documents to look at one by one; all others must be certain.
    """
    with httpx.Client(base_url=installation.url, timeout=30) as client:
        if (unfinished := _wait_for_jobs(client)) is not None:
            return [unfinished]
        found = [
            *_of_documents(client, ledger, ids),
            *_of_searches(client, ledger, ids),
            *_of_counts(client, ledger),
        ]
    return [*found, *_of_files(installation)]


def _wait_for_jobs(client: httpx.Client) -> str | None:
    until = time.monotonic() + DONE_WITHIN_S
    while True:
        jobs = [
            job
            for state in ("queued", "running")
            for job in client.get("/v1/jobs", params={"state": state}).raise_for_status().json()["jobs"]
        ]
        if not jobs:
            break
        if time.monotonic() > until:
            return f"error: jobs that do not end: {jobs}"
        time.sleep(0.02)
    failed = client.get("/v1/jobs", params={"state": "failed"}).json()["jobs"]
    return f"error: jobs that failed: {failed}" if failed else None


def _of_documents(client: httpx.Client, ledger: Ledger, ids: Sequence[str]) -> Iterator[str]:
    for document_id in ids:
        answer = client.get(f"/v1/collections/{COLLECTION}/documents/{document_id}")
        if answer.status_code not in (200, 404):
            yield f"error: {answer.status_code} {answer.text}"
            continue
        text = answer.json()["text"] if answer.status_code == 200 else None
        if (verdict := ledger.judge(document_id, text)) != "right":
            yield f"{verdict}: {document_id} is {text!r}, acknowledged was {ledger.view(document_id).text!r}"
        ledger.settle(document_id, text)


def _of_searches(client: httpx.Client, ledger: Ledger, ids: Sequence[str]) -> Iterator[str]:
    for document_id in ids:
        text = ledger.view(document_id).text
        asked = text or next(reversed(ledger.texts(document_id)), None)
        if asked is None:
            continue
        for mode in MODES:
            answer = search(client, asked, mode)
            if answer.status_code != 200:
                yield f"error: {answer.status_code} {answer.text}"
                continue
            hits = answer.json()["hits"]
            yield from untrue_passages(hits, ledger)
            yield from _of_hits(hits, document_id, text, mode)


def _of_hits(hits: list[dict[str, Any]], document_id: str, text: str | None, mode: str) -> Iterator[str]:
    of_it = [hit for hit in hits if hit["document_id"] == document_id]
    if text is None:
        if of_it:
            yield f"wrong: {document_id} is deleted and was found, {mode}"
    elif not of_it:
        yield f"lost: {document_id} is stored and was not found, {mode}"
    elif any(text[p["start"] : p["end"]] != p["text"] for hit in of_it for p in hit["passages"]):
        yield f"wrong: an old revision of {document_id} was found, {mode}"


def _of_counts(client: httpx.Client, ledger: Ledger) -> Iterator[str]:
    details = client.get(f"/v1/collections/{COLLECTION}").raise_for_status().json()
    n_expected = sum(ledger.view(document_id).text is not None for document_id in ledger.ids())
    if details["stats"]["n_documents"] != n_expected:
        yield f"disagree: {details['stats']['n_documents']} documents are counted, {n_expected} are there"
    counted = {"documents": "n_documents", "passages": "n_passages"}
    for view, index in details["index"].items():
        n_vectors = index["n_base"] + index["n_tail"] - index["n_deleted"]
        if n_vectors != details["stats"][counted[view]]:
            yield f"disagree: {n_vectors} vectors of {view}, {details['stats'][counted[view]]} rows"


def _of_files(installation: Installation) -> Iterator[str]:
    """From a process of its own: rows, vectors and words have the same keys, and no file is damaged."""
    path = installation.home / "bifocal.db"
    rows = SqliteRows(path)
    settings = Settings(home=installation.home)
    index = EmbeddedIndex(rows, installation.home / "indexes", settings)
    try:
        collection = rows.collection(COLLECTION)
        if (damages := index.damages(collection)) and (damages := index.damages(collection)):
            yield f"disagree: {damages}"  # looked at twice: a new base may have replaced them
        yield from _of_keys(rows, index, collection)
    finally:
        index.close()
        rows.close()
    try:
        assert_sound(path)
    except AssertionError as error:
        yield f"disagree: {error}"


def _of_keys(rows: SqliteRows, index: EmbeddedIndex, collection: Collection) -> Iterator[str]:
    for view in VIEWS:
        blocks = list(rows.vectors_after(collection.key, view, 0))
        stored = _sorted([block.keys for block in blocks])
        if not len(stored):
            continue
        query = blocks[0].vectors[0].astype(np.float32)
        nearest = index.nearest(collection, view, query / np.linalg.norm(query), depth=EVERYTHING)
        if not np.array_equal(stored, _sorted([nearest.keys])):
            yield f"disagree: {len(stored)} {view} in the rows, {len(nearest.keys)} found by vector"
        if view == "passages":
            words = index.matching(collection, COMMON, depth=EVERYTHING)
            if not np.array_equal(stored, _sorted([words.keys])):
                yield f"disagree: {len(stored)} passages in the rows, {len(words.keys)} found by words"


def _sorted(keys: list[Keys]) -> Keys:
    return np.sort(np.concatenate([np.empty(0, np.int64), *keys]))
