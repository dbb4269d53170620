"""Time and space of metadata filters and facets over made documents.

    python benchmarks/filters.py --n 1000000

Every document has seven fields: two strings of 10 and 50,000 values, an integer, a random real, a date, a
list of three tags and a boolean. They are put into the tables without texts and vectors, and the index is
filled as the migration does it; the cost of a write is measured through the real write path, with and without
metadata. Times are of the process (CPU), which a busy machine changes least.
Writes benchmarks/results/filters_{n}.json.
"""

import argparse
import datetime as dt
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from app.domain import (
    Collection,
    CollectionSettings,
    Document,
    JobInput,
    JobKind,
    Outcome,
    OutcomeStatus,
    Passage,
)
from app.filters import Filter, parse_filter
from app.storage.rows import EncodedDocument
from app.storage.sqlite import SqliteRows
from app.storage.sqlite.columns import Columns
from app.storage.sqlite.matching import Memory
from app.storage.sqlite.metadata import backfill
from benchmarks.environment import write_result

N_TIMES = 7
N_WRITTEN = 2_000
FILTERS: dict[str, Any] = {
    "equal, 20 documents": {"field": "author", "eq": "author 7"},
    "range, 0.1 %": {"field": "score", "lt": 0.001},
    "range, 1 %": {"field": "score", "lt": 0.01},
    "equal, 10 %": {"field": "lang", "eq": "l3"},
    "range, 10 %": {"field": "score", "lt": 0.1},
    "equal, 50 %": {"field": "draft", "eq": True},
    "range, 50 %": {"field": "score", "lt": 0.5},
    "dates, 50 %": {"field": "published", "gte": "2020-01-01"},
    "not, 90 %": {"not": {"field": "lang", "eq": "l3"}},
    "50 % and 10 %": {"and": [{"field": "draft", "eq": True}, {"field": "lang", "eq": "l3"}]},
    "50 % and 20 documents": {"and": [{"field": "draft", "eq": True}, {"field": "author", "eq": "author 7"}]},
    "in 1,000 values": {"field": "author", "in": [f"author {i}" for i in range(1000)]},
}
FACETS = ("lang", "year", "tags", "author")
DAYS = [(dt.date(2015, 1, 1) + dt.timedelta(days=i)).isoformat() for i in range(3650)]


def made_metadata(n: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    lang, year, score = rng.integers(0, 10, n), rng.integers(1990, 2025, n), rng.random(n)
    days, tags = rng.integers(0, len(DAYS), n), rng.integers(0, 100, (n, 3))
    for i in range(n):
        yield {
            "lang": f"l{lang[i]}",
            "year": int(year[i]),
            "score": float(score[i]),
            "published": DAYS[days[i]],
            "author": f"author {i % 50_000}",
            "tags": [f"t{tag}" for tag in tags[i]],
            "draft": bool(score[i] < 0.5),
        }


def fill(path: Path, n: int) -> Collection:
    """Rows of documents alone."""
    rows = SqliteRows(path)
    collection, _ = rows.create_collection("made", CollectionSettings(), fingerprint="made", model="made")
    rows.close()
    connection = sqlite3.connect(path)
    connection.executemany(
        "INSERT INTO documents VALUES (?, ?, ?, NULL, ?, '[]', x'00', 0, 0, 0, 0, 0, 0)",
        (
            (key, collection.key, f"{key * 2654435761 % 2**32:010}", json.dumps(metadata))
            for key, metadata in enumerate(made_metadata(n), 1)
        ),
    )
    connection.executemany(
        "INSERT INTO document_vectors VALUES (?, ?, x'')", ((key, collection.key) for key in range(1, n + 1))
    )
    connection.execute("UPDATE last_keys SET key = ? WHERE noun = 'document'", (n,))
    connection.execute("UPDATE collections SET n_documents = ?, max_document_key = ?", (n, n))
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return collection


def index_metadata(path: Path) -> dict[str, float]:
    before = path.stat().st_size
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    started = time.process_time()
    backfill(connection)
    connection.execute("COMMIT")
    seconds = time.process_time() - started
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (n_values,) = connection.execute("SELECT count(*) FROM metadata_values").fetchone()
    connection.close()
    return {
        "seconds": round(seconds, 1),
        "n_values": n_values,
        "bytes_per_value": round((path.stat().st_size - before) / n_values, 1),
    }


def milliseconds(run: Callable[[], object], n_times: int = N_TIMES) -> dict[str, float]:
    times = []
    for _ in range(n_times):
        started = time.process_time()
        run()
        times.append(1000 * (time.process_time() - started))
    return {"p50_ms": round(float(np.median(times)), 3), "max_ms": round(max(times), 3)}


def measure_filters(rows: SqliteRows, collection: Collection) -> dict[str, Any]:
    def anew(condition: Filter) -> None:
        rows._memory = Memory()
        rows.matching_documents(collection.key, condition)

    measured = {}
    for name, written in FILTERS.items():
        condition = parse_filter(written)
        measured[name] = {
            "n_documents": len(rows.matching_documents(collection.key, condition)),
            "new": milliseconds(lambda c=condition: anew(c)),
            "again": milliseconds(lambda c=condition: rows.matching_documents(collection.key, c), 100),
        }
    return measured


def measure_facets(rows: SqliteRows, collection: Collection) -> dict[str, Any]:
    def anew(name: str) -> None:
        rows._columns = Columns()
        rows.facets(collection.key, [name])

    half = parse_filter(FILTERS["equal, 50 %"])
    return {
        name: {
            "new": milliseconds(lambda n=name: anew(n), 3),
            "again": milliseconds(lambda n=name: rows.facets(collection.key, [n])),
            "again, of 50 %": milliseconds(lambda n=name: rows.facets(collection.key, [n], condition=half)),
        }
        for name in FACETS
    }


def measure_listing(rows: SqliteRows, collection: Collection) -> dict[str, Any]:
    names = ("range, 0.1 %", "range, 1 %", "equal, 10 %", "equal, 50 %")
    conditions = {name: parse_filter(FILTERS[name]) for name in names}
    return {
        name: milliseconds(lambda c=condition: rows.documents(collection.key, condition=c, limit=100))
        for name, condition in conditions.items()
    }


def measure_writes(rows: SqliteRows, collection: Collection) -> dict[str, float]:
    """Milliseconds per document, in batches of 100, into the full collection."""
    vector = np.zeros(384, np.float16)
    vector[0] = 1
    spent = {}
    for name, metadata in (
        ("without metadata", [{}] * N_WRITTEN),
        ("with", list(made_metadata(N_WRITTEN, 1))),
    ):
        documents = [
            EncodedDocument(
                Document(f"{name} {i}", "text", metadata=each),
                b"",
                [Passage(0, 4, 1)],
                vector[None],
                vector,
                1,
                0,
            )
            for i, each in enumerate(metadata)
        ]
        n_batches = N_WRITTEN // 100
        job = rows.submit_job(collection.key, JobKind.DOCUMENTS, [JobInput(i, b"") for i in range(n_batches)])
        rows.claim_job("worker", lease_s=3600)
        started = time.process_time()
        for i in range(n_batches):
            rows.write_documents(
                collection.key,
                documents[100 * i : 100 * (i + 1)],
                job_id=job.id,
                worker="worker",
                outcomes=[Outcome(i, None, OutcomeStatus.CREATED)],
            )
        spent[name] = round(1000 * (time.process_time() - started) / N_WRITTEN, 3)
        rows.cancel_job(job.id)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=1_000_000)
    n: int = parser.parse_args().n
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        collection = fill(path, n)
        index = index_metadata(path)
        rows = SqliteRows(path)
        result = {
            "n_documents": n,
            "index": index,
            "filters": measure_filters(rows, collection),
            "facets": measure_facets(rows, collection),
            "listing": measure_listing(rows, collection),
            "write_ms_per_document": measure_writes(rows, collection),
        }
        rows.close()
    write_result(f"filters_{n}", result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
