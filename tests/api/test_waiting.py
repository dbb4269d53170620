"""Waiting for a job."""

import threading
from pathlib import Path

import anyio
import httpx
import pytest
from starlette.requests import Request
from starlette.types import Message

from app.api.waiting import preferred_wait_s, wait_for_job
from app.domain import CollectionSettings, Job, JobInput, JobKind, JobState
from app.main import create_app
from app.storage.sqlite import SqliteRows
from tests.api.serving import serving
from tests.api.stand_up import settings_in
from tests.reading_substitutes import without_reading
from tests.substitutes import WordHashEmbedder
from tests.text_substitutes import without_texts


def queued_job(rows: SqliteRows) -> Job:
    collection, _ = rows.create_collection("c", CollectionSettings(), fingerprint="f", model="m")
    return rows.submit_job(collection.key, JobKind.DOCUMENTS, [JobInput(0, b"{}")])


def request_of(message: Message, **headers: str) -> Request:
    async def receive() -> Message:
        return message

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw}, receive)


def test_a_client_that_has_gone_ends_the_waiting(tmp_path: Path) -> None:
    rows = SqliteRows(tmp_path / "bifocal.db")
    job = queued_job(rows)
    request = request_of({"type": "http.disconnect"})

    async def wait() -> Job:
        with anyio.fail_after(30):
            return await wait_for_job(rows, job, request, wait_s=3600)

    assert anyio.run(wait).state is JobState.QUEUED
    rows.close()


def test_a_job_that_is_final_already_is_not_waited_for(tmp_path: Path) -> None:
    rows = SqliteRows(tmp_path / "bifocal.db")
    job = queued_job(rows)
    rows.cancel_job(job.id)

    async def wait() -> Job:
        return await wait_for_job(rows, job, request_of({"type": "http.request"}), wait_s=3600)

    assert anyio.run(wait).state is JobState.CANCELLED
    rows.close()


@pytest.mark.parametrize(
    ("prefer", "wait_s"),
    [
        ("wait=5", 5.0),
        ("WAIT=5", 5.0),
        ('wait="5"', 5.0),
        ("wait = 5", 5.0),
        ("return=minimal, wait=5; x=1", 5.0),
        ("wait=100000", 60.0),
        ("wait=-1", None),
        ("wait=1.5", None),
        ("respond-async, wait=5", 0.0),
        ("", None),
    ],
)
def test_the_wait_preference_is_read_as_rfc_7240_writes_it(prefer: str, wait_s: float | None) -> None:
    assert preferred_wait_s(request_of({"type": "http.request"}, prefer=prefer)) == wait_s


def test_requests_that_wait_keep_no_other_request_waiting(tmp_path: Path) -> None:
    """More of them than the server has threads, and no worker that would ever finish their jobs."""
    settings = settings_in(tmp_path)
    app = create_app(
        settings,
        load=lambda _: WordHashEmbedder(),
        load_reading=without_reading,
        load_texts=without_texts,
    )
    with serving(app) as url, httpx.Client(base_url=url, timeout=60) as client:
        client.put("/v1/collections/demo").raise_for_status()
        stopped: list[int] = []

        def write(number: int) -> None:
            path = f"{url}/v1/collections/demo/documents/{number}"
            stopped.append(
                httpx.put(path, json={"text": "x"}, headers={"Prefer": "wait=60"}, timeout=60).status_code
            )

        writers = [threading.Thread(target=write, args=[number]) for number in range(60)]
        for writer in writers:
            writer.start()
        while len(jobs := client.get("/v1/jobs").json()["jobs"]) < 60:
            pass
        assert client.post("/v1/collections/demo/search/asymmetric", json={"query": "x"}).status_code == 200
        assert stopped == []
        for job in jobs:
            client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
        for writer in writers:
            writer.join()
        assert stopped == [409] * 60
