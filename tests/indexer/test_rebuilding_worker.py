"""Re-indexing as the worker does it: beside writes, through kills, and under searches."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import get_args

from app.domain import Job, JobState, Mode
from app.services.search import Search
from app.storage.sqlite import SqliteRows
from indexer.encoding import DocumentEncoder
from indexer.rebuilding import Rebuild
from indexer.worker import Worker
from tests.indexer.stand_ins import Bench, packaged_tokenizer, wait_until, working
from tests.indexer.test_rebuilding import SHORT, TEXT, begin, claim, contents, fill
from tests.indexer.test_worker_crash import worker_process
from tests.services.library import NAME, Library
from tests.storage.consistency import assert_sound

MODES: Sequence[Mode] = get_args(Mode)


def test_a_worker_without_it_leaves_the_job_to_others(bench: Bench) -> None:
    job = begin(bench.rows)
    worker = Worker(bench.rows, bench.index, bench.ingestion, settings=bench.settings)
    with working(bench, worker):
        write = bench.submit_documents({"id": "a", "text": "A castle."})
        wait_until(lambda: bench.rows.job(write.id).state.is_final)
    assert bench.rows.job(job.id).state is JobState.QUEUED


def test_a_failed_job_says_why_and_drops_the_standby(bench: Bench) -> None:
    job = begin(bench.rows, fingerprint="another model")
    with working(bench):
        wait_until(lambda: bench.rows.job(job.id).state.is_final)
    done = bench.rows.job(job.id)
    assert done.state is JobState.FAILED
    assert "another mode" in (done.error or "")
    assert bench.rows.collections() == [bench.collection]


def await_success(bench: Bench, job: Job) -> None:
    wait_until(lambda: bench.rows.job(job.id).state.is_final)
    assert bench.rows.job(job.id).state is JobState.SUCCEEDED


@contextmanager
def writing(bench: Bench) -> Iterator[list[str]]:
    """A client that writes documents all the time, and deletes every third; gives the ids of the others."""
    kept: list[str] = []
    end = threading.Event()

    def write() -> None:
        i = 0
        while not end.is_set():
            new = f"w{i}"
            jobs = [bench.submit_documents({"id": new, "text": f"{new} of {TEXT}"})]
            kept.append(new)
            if i % 3 == 2:
                gone = kept.pop(0)
                jobs.append(bench.submit_deletes(gone))
            for job in jobs:
                await_success(bench, job)
            i += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield kept
    finally:
        end.set()
        thread.join()


def test_nothing_that_is_written_all_the_time_is_lost_by_going_there_and_back(bench: Bench) -> None:
    fill(bench, n_documents=20)

    def go_on(submit: Callable[[SqliteRows], Job]) -> None:
        n_kept = len(kept)
        wait_until(lambda: len(kept) > n_kept)
        await_success(bench, submit(bench.rows))

    with working(bench), writing(bench) as kept:
        go_on(begin)
        go_on(lambda rows: rows.begin_rollback("papers"))
        go_on(lambda rows: rows.begin_rollback("papers"))
    live = bench.rows.collection("papers")
    stored = [each.id for each in bench.rows.documents(live.key, limit=10_000)]
    assert stored == sorted([*map(str, range(20)), *kept])
    assert live.settings == SHORT
    assert_sound(bench.settings.home / "bifocal.db")


def test_a_killed_worker_s_rebuild_goes_on_where_it_was(bench: Bench) -> None:
    n_documents = 12
    bench.submit_documents(*({"id": str(i), "text": f"{i} {TEXT * 60}"} for i in range(n_documents)))
    bench.process_next()
    before = contents(bench.rows, bench.collection)
    job = begin(bench.rows)
    n_seen = 0
    for _ in range(2):
        with worker_process(bench.settings.home, delay_s=0.1) as worker:
            wait_until(lambda: bench.rows.job(job.id).n_done > n_seen)  # noqa: B023 - called at once
            n_seen = bench.rows.job(job.id).n_done
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        assert 0 < n_seen < n_documents
        assert bench.rows.collection("papers") == bench.collection
    with worker_process(bench.settings.home):
        wait_until(lambda: bench.rows.job(job.id).state.is_final)
    assert bench.rows.job(job.id).state is JobState.SUCCEEDED
    live = bench.rows.collection("papers")
    assert live.settings == SHORT
    assert contents(bench.rows, live) == before
    assert_sound(bench.settings.home / "bifocal.db")


class Asker:
    """Searches all the time, in a thread, and keeps what was not as it should be."""

    def __init__(self, library: Library, *, n_documents: int) -> None:
        self._search = Search(library.rows, library.index, library.embedder)
        self._n_documents = n_documents
        self.n_asked = 0
        self.faults: list[object] = []

    def __call__(self, end: threading.Event) -> None:
        while not end.is_set():
            try:
                self._ask()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
                self.faults.append(error)
            self.n_asked += 1

    def _ask(self) -> None:
        for mode in MODES:
            result = self._search.asymmetric(NAME, "river valley", mode=mode, top_k=5)
            if len(result.hits) != 5 or result.total.n_documents != self._n_documents:
                self.faults.append((mode, result))
        if len(self._search.symmetric(NAME, document_id="d7", top_k=5).hits) != 5:
            self.faults.append("symmetric")


def test_searches_find_the_same_documents_before_during_and_after(library: Library) -> None:
    """With the real indexes, while another thread asks all the time."""
    library.put({f"d{i}": f"Document {i} speaks of the river {'and the valley ' * 40}." for i in range(60)})
    asker, end = Asker(library, n_documents=60), threading.Event()
    thread = threading.Thread(target=asker, args=[end])
    encoder = DocumentEncoder(library.embedder, packaged_tokenizer())
    rebuild = Rebuild(library.rows, library.index, encoder, pause=threading.Lock)
    thread.start()
    try:
        for submit in (begin, lambda rows: rows.begin_rollback(NAME)):
            submit(library.rows)
            rebuild(claim(library.rows), worker="w", should_stop=lambda: False)
            n_asked = asker.n_asked
            wait_until(lambda n=n_asked: asker.n_asked > n + 2)  # type: ignore[misc]
    finally:
        end.set()
        thread.join()
    assert asker.faults == []
