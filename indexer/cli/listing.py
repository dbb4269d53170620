"""What `bifocal collections` and `bifocal jobs` do."""

import dataclasses
from typing import Any, get_args

from app.domain import Job, OutcomeStatus, SplitterSettings, View
from app.errors import InvalidInput
from app.settings import Settings
from app.storage.rows import Rows
from indexer.cli import composition
from indexer.cli.composition import open_rows, open_store
from indexer.cli.printing import output, print_fields, print_json, print_table

MAX_SHOWN = 100


def list_collections(settings: Settings, *, as_json: bool) -> None:
    with open_rows(settings) as rows:
        found = [(each, rows.collection_stats(each.key)) for each in rows.collections()]
    if as_json:
        print_json(
            [
                {"name": c.name, "model": c.model, "standby_of": c.standby_of, **dataclasses.asdict(s)}
                for c, s in found
            ]
        )
        return
    print_table(
        ("collection", "documents", "passages", "model", "created", "standby of"),
        [(c.name, s.n_documents, s.n_passages, c.model, c.created_at, c.standby_of) for c, s in found],
    )


def create_collection(settings: Settings, name: str, *, max_tokens: int, overlap_tokens: int) -> None:
    if overlap_tokens > max_tokens // 2:
        raise InvalidInput(f"--overlap-tokens is at most half of --max-tokens, here {max_tokens // 2}")
    splitter = SplitterSettings(max_tokens=max_tokens, overlap_tokens=overlap_tokens)
    with open_rows(settings) as rows:
        _, is_new = composition.create_collection(rows, name, settings, splitter)
    output().print(f"Collection {name!r} {'created' if is_new else 'was there already'}.", markup=False)


def delete_collection(settings: Settings, name: str) -> None:
    with open_rows(settings) as rows:
        rows.drop_collection(name)
    output().print(f"Collection {name!r} deleted.", markup=False)


def show_stats(settings: Settings, name: str, *, as_json: bool) -> None:
    with open_store(settings) as store:
        collection = store.rows.collection(name)
        stats: dict[str, Any] = {
            "name": name,
            "model": collection.model,
            "fingerprint": collection.fingerprint,
            "splitter": dataclasses.asdict(collection.settings.splitter),
            "index_settings": dataclasses.asdict(collection.settings.index),
            "search": dataclasses.asdict(collection.search),
            **dataclasses.asdict(store.rows.collection_stats(collection.key)),
            "indexes": {
                view: dataclasses.asdict(store.index.stats(collection, view)) for view in get_args(View)
            },
        }
    if as_json:
        print_json(stats)
    else:
        print_fields(stats)


def list_jobs(settings: Settings, *, limit: int, as_json: bool) -> None:
    with open_rows(settings) as rows:
        jobs = rows.jobs(limit=limit)
    if as_json:
        print_json([dataclasses.asdict(job) for job in jobs])
        return
    print_table(
        ("job", "kind", "collection", "state", "done", "created"),
        [
            (
                each.id,
                each.kind,
                each.collection,
                each.state,
                f"{each.n_done}/{each.n_inputs}",
                each.created_at,
            )
            for each in jobs
        ],
    )


def show_job(settings: Settings, job_id: str, *, as_json: bool) -> None:
    with open_rows(settings) as rows:
        job = rows.job(job_id)
        rejected = _rejected(rows, job)
    if as_json:
        print_json({**dataclasses.asdict(job), "rejected": rejected})
        return
    print_fields(dataclasses.asdict(job))
    if rejected:
        print_table(("input", "document", "rejected because"), [tuple(each.values()) for each in rejected])


def _rejected(rows: Rows, job: Job) -> list[dict[str, Any]]:
    """At most MAX_SHOWN."""
    found: list[dict[str, Any]] = []
    after = -1
    while len(found) < MAX_SHOWN and (outcomes := rows.outcomes(job.id, after=after)):
        after = outcomes[-1].ordinal
        found += [
            {"input": o.ordinal, "document_id": o.document_id, "error": o.error}
            for o in outcomes
            if o.status is OutcomeStatus.REJECTED
        ]
    return found[:MAX_SHOWN]


def cancel_job(settings: Settings, job_id: str) -> None:
    with open_rows(settings) as rows:
        job = rows.cancel_job(job_id)
    output().print(f"Job {job_id} cancelled; {job.n_done} of {job.n_inputs} inputs were done.", markup=False)
