"""Re-indexing: what a job of the worker does to a collection, and what happens around it."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest

from app.domain import (
    Collection,
    CollectionSettings,
    Job,
    JobInput,
    JobKind,
    JobState,
    Outcome,
    OutcomeStatus,
    SplitterSettings,
)
from app.errors import Conflict, FingerprintMismatch, InvalidInput
from app.storage.rebuild_rows import ChangeMark, Differing
from app.storage.rows import ClaimedJob, Vectors
from app.storage.sqlite import SqliteRows
from indexer.encoding import DocumentEncoder, Stopped
from indexer.rebuilding import MAX_ATTEMPTS, Rebuild, steps
from tests.indexer.stand_ins import Bench, packaged_tokenizer, wait_until, working
from tests.storage.building import encoded
from tests.substitutes import DIMENSIONS, WordHashEmbedder

SHORT = CollectionSettings(SplitterSettings(max_tokens=32, overlap_tokens=0))
STANDBY = "papers-standby"
TEXT = " ".join(f"Sentence number {i} speaks of castles and rivers." for i in range(20))


def begin(rows: SqliteRows, *, fingerprint: str = "word-hash-1") -> Job:
    return rows.begin_reindex("papers", SHORT, standby=STANDBY, fingerprint=fingerprint, model="word-hash")


def claim(rows: SqliteRows, *, lease_s: float = 60) -> ClaimedJob:
    claimed = rows.claim_job("w", lease_s=lease_s, kinds=[JobKind.REINDEX])
    assert claimed is not None
    return claimed


def run(bench: Bench, claimed: ClaimedJob, should_stop: Callable[[], bool] = lambda: False) -> None:
    rebuild = Rebuild(bench.rows, bench.index, bench.encoder, pause=bench.ingestion.paused)
    rebuild(claimed, worker="w", should_stop=should_stop)


def fill(bench: Bench, n_documents: int = 3) -> None:
    bench.submit_documents(*({"id": str(i), "text": f"{i} {TEXT}"} for i in range(n_documents)))
    bench.process_next()


def contents(rows: SqliteRows, collection: Collection) -> list[object]:
    """All that does not depend on splitter and model."""
    return [
        dataclasses.replace(rows.document(collection.key, each.id), key=0, n_passages=0)
        for each in rows.documents(collection.key, limit=1000)
    ]


def test_documents_are_split_anew_and_keep_everything_else(bench: Bench) -> None:
    fill(bench)
    before, n_passages = contents(bench.rows, bench.collection), bench.rows.collection_stats(1).n_passages
    begin(bench.rows)
    run(bench, claim(bench.rows))
    live = bench.rows.collection("papers")
    assert live.settings == SHORT
    assert contents(bench.rows, live) == before
    stats = bench.rows.collection_stats(live.key)
    assert stats.n_passages > n_passages
    [block] = bench.rows.vectors_after(live.key, "passages", 0)
    passages = bench.rows.passages_by_key(block.keys.tolist()).values()
    assert max(each.passage.n_tokens for each in passages) <= 32


def test_writes_after_the_switch_are_split_as_the_new_form_says(bench: Bench) -> None:
    fill(bench)
    begin(bench.rows)
    run(bench, claim(bench.rows))
    job = bench.submit_documents({"id": "0", "text": f"0 {TEXT}"}, {"id": "new", "text": TEXT})
    bench.process_next()
    statuses = [outcome.status.value for outcome in bench.rows.outcomes(job.id)]
    assert statuses == ["unchanged", "created"]
    live = bench.rows.collection("papers")
    assert bench.rows.document(live.key, "new").n_passages > 3
    assert bench.rows.collection_stats(bench.collection.key).n_documents == 3


def test_the_index_has_followed_before_the_switch(bench: Bench) -> None:
    fill(bench, n_documents=4)
    begin(bench.rows)
    run(bench, claim(bench.rows))
    assert bench.index.n_documents_at_apply[-1] == 4


def test_an_empty_collection_is_switched_at_once(bench: Bench) -> None:
    begin(bench.rows)
    run(bench, claim(bench.rows))
    assert bench.rows.collection("papers").settings == SHORT


class Interfering(SqliteRows):
    """Rows in which somebody else writes whenever a mark was taken."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.writes: list[Callable[[], None]] = []

    def change_mark(self, collection_key: int) -> ChangeMark:
        mark = super().change_mark(collection_key)
        if self.writes:
            self.writes.pop(0)()
        return mark


def test_what_is_written_while_it_is_about_to_switch_is_not_lost(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    fill(bench)
    rows = Interfering(tmp_path / "bifocal.db")

    def write(kind: JobKind, body: bytes) -> Callable[[], None]:
        def act() -> None:
            bench.submit(kind, [body])
            claimed = bench.rows.claim_job("v", lease_s=60, kinds=[kind])
            assert claimed is not None
            other = Bench(tmp_path)  # whose writes wait for nobody
            other.ingestion.process(claimed, worker="v")
            other.close()

        return act

    rows.writes = [
        write(JobKind.DOCUMENTS, b'{"id": "0", "text": "A new text."}'),
        write(JobKind.DOCUMENTS, b'{"id": "late", "text": "Late."}'),
        write(JobKind.DELETE, b'"1"'),
    ]
    begin(rows)
    Rebuild(rows, bench.index, bench.encoder, pause=bench.ingestion.paused)(
        claim(rows), worker="w", should_stop=lambda: False
    )
    live = rows.collection("papers")
    assert [each.id for each in rows.documents(live.key)] == ["0", "2", "late"]
    assert rows.document(live.key, "0").document.text == "A new text."
    assert contents(rows, live) == contents(rows, rows.collection(STANDBY))
    rows.close()
    bench.close()


def test_a_stopped_job_goes_on_with_what_is_left(bench: Bench) -> None:
    bench.submit_documents(*({"id": f"{i:02}", "text": TEXT * 60} for i in range(8)))
    bench.process_next()
    job = begin(bench.rows)
    with pytest.raises(Stopped):
        run(bench, claim(bench.rows), should_stop=lambda: bench.rows.job(job.id).n_done > 0)
    bench.rows.release_job(job.id, "w")
    n_done = bench.rows.job(job.id).n_done
    assert 0 < n_done < 8
    assert bench.rows.collection("papers") == bench.collection
    n_texts = bench.embedder.n_texts
    run(bench, claim(bench.rows))
    done = bench.rows.job(job.id)
    assert (done.state, done.n_done) == (JobState.SUCCEEDED, 8)
    live = bench.rows.collection("papers")
    share_left = (8 - n_done) / 8
    n_passages = bench.rows.collection_stats(live.key).n_passages
    assert bench.embedder.n_texts - n_texts == share_left * n_passages


def test_a_cancelled_job_leaves_the_collection_and_no_standby(bench: Bench) -> None:
    fill(bench)
    job = begin(bench.rows)
    claimed = claim(bench.rows)
    bench.rows.cancel_job(job.id)
    with pytest.raises(Exception, match="standby has been dropped"):
        run(bench, claimed)
    assert bench.rows.collections() == [bench.collection]


def test_a_job_that_is_cancelled_while_it_copies_writes_nothing_more(bench: Bench) -> None:
    fill(bench)
    job = begin(bench.rows)

    def cancel() -> bool:
        if not bench.rows.job(job.id).state.is_final:
            bench.rows.cancel_job(job.id)
        return False

    with pytest.raises(Conflict):
        run(bench, claim(bench.rows), should_stop=cancel)
    assert bench.rows.collections() == [bench.collection]


def test_a_standby_of_another_model_is_refused_naming_both(bench: Bench) -> None:
    begin(bench.rows, fingerprint="another model")
    with pytest.raises(FingerprintMismatch, match=r"another mode.*word-hash"):
        run(bench, claim(bench.rows))


def test_a_collection_of_another_model_becomes_one_of_the_model_that_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    fill(bench)
    newer = WordHashEmbedder(fingerprint="newer")
    encoder = DocumentEncoder(newer, packaged_tokenizer())
    begin(bench.rows, fingerprint="newer")
    Rebuild(bench.rows, bench.index, encoder, pause=bench.ingestion.paused)(
        claim(bench.rows), worker="w", should_stop=lambda: False
    )
    assert bench.rows.collection("papers").fingerprint == "newer"
    assert newer.n_texts > 0
    bench.close()


class Unreadable(DocumentEncoder):
    """Of a model that cannot take one of the texts."""

    def encode(self, splits: object, should_stop: object = None) -> list[object]:  # type: ignore[override]
        return [InvalidInput("no usable vector") for _ in splits]  # type: ignore[attr-defined]


def test_a_document_that_cannot_be_encoded_so_is_named_and_nothing_is_switched(bench: Bench) -> None:
    fill(bench)
    begin(bench.rows)
    encoder = Unreadable(bench.embedder, packaged_tokenizer())
    rebuild = Rebuild(bench.rows, bench.index, encoder, pause=bench.ingestion.paused)
    with pytest.raises(InvalidInput, match=r"document '0'.*no usable vector.*nothing was switched"):
        rebuild(claim(bench.rows), worker="w", should_stop=lambda: False)
    assert bench.rows.collection("papers") == bench.collection


def test_a_job_at_which_workers_died_again_and_again_is_given_up(bench: Bench) -> None:
    fill(bench)
    job = begin(bench.rows)
    for _ in range(MAX_ATTEMPTS):
        claim(bench.rows, lease_s=0)
    run(bench, claim(bench.rows))
    done = bench.rows.job(job.id)
    assert done.state is JobState.FAILED
    assert "died 3 times" in (done.error or "")
    assert bench.rows.collections() == [bench.collection]


def test_steps_hold_so_much_text_but_at_least_a_document() -> None:
    sizes = [(10, False), (95, False), (1000, True), (5, False), (500, False), (1, False)]
    differing = [Differing(str(i), size, is_same) for i, (size, is_same) in enumerate(sizes)]
    found = [[int(each.document_id) for each in step] for step in steps(differing, size_bytes=100)]
    assert found == [[0], [1, 2, 3], [4], [5]]
    assert list(steps([])) == []


def test_writes_wait_while_the_last_pass_runs(bench: Bench) -> None:
    with working(bench):
        with bench.ingestion.paused():
            job = bench.submit_documents({"id": "a", "text": "Patience."})
            wait_until(lambda: bench.rows.job(job.id).state is JobState.RUNNING)
            assert bench.rows.collection_stats(bench.collection.key).n_documents == 0
        wait_until(lambda: bench.rows.job(job.id).state.is_final)
    assert bench.stored("a").text == "Patience."


class Busy(SqliteRows):
    """Rows in which a document comes in during every pass for which writes do not wait."""

    is_paused = False
    n_marks = 0

    def change_mark(self, collection_key: int) -> ChangeMark:
        mark = super().change_mark(collection_key)
        self.n_marks += 1
        if not self.is_paused:
            self.submit_job(collection_key, JobKind.DOCUMENTS, [JobInput(0, b'{"id": "new", "text": "x"}')])
            claimed = self.claim_job("v", lease_s=60, kinds=[JobKind.DOCUMENTS])
            assert claimed is not None
            text = f"Pass {self.n_marks}."
            new = encoded("new", text, n_passages=1)
            done = Outcome(0, "new", OutcomeStatus.CREATED)
            write = dataclasses.replace(new, passage_vectors=wide(), document_vector=wide()[0])
            self.write_documents(collection_key, [write], job_id=claimed.job.id, worker="v", outcomes=[done])
            self.finish_job(claimed.job.id, "v", JobState.SUCCEEDED)
        return mark

    @contextmanager
    def pause(self) -> Iterator[None]:
        self.is_paused = True
        yield
        self.is_paused = False


def wide() -> Vectors:
    """A vector of as many dimensions as the encoder's."""
    vector = np.zeros((1, DIMENSIONS), np.float16)
    vector[0, 0] = 1
    return vector


@pytest.mark.parametrize(("n_documents", "n_passes"), [(3, 2), (7, 3)])
def test_writes_wait_only_for_a_pass_that_has_little_to_do(
    tmp_path: Path, n_documents: int, n_passes: int
) -> None:
    """7 documents of 1,000 characters are more than may be encoded while writes wait here, 3 are not."""
    bench = Bench(tmp_path)
    fill(bench, n_documents)
    rows = Busy(tmp_path / "bifocal.db")
    begin(rows)
    Rebuild(rows, bench.index, bench.encoder, pause=rows.pause, little_chars=5_000)(
        claim(rows), worker="w", should_stop=lambda: False
    )
    live = rows.collection("papers")
    assert rows.n_marks == n_passes
    assert rows.document(live.key, "new").document.text == f"Pass {n_passes - 1}."
    assert rows.collection_stats(live.key).n_documents == n_documents + 1
    rows.close()
    bench.close()


def test_where_nothing_is_written_no_write_has_to_wait(bench: Bench) -> None:
    fill(bench)
    begin(bench.rows)

    def pause() -> AbstractContextManager[object]:
        pytest.fail("nothing was written, so nothing needs to wait")

    rebuild = Rebuild(bench.rows, bench.index, bench.encoder, pause=pause)
    rebuild(claim(bench.rows), worker="w", should_stop=lambda: False)
    assert bench.rows.collection("papers").settings == SHORT


class Dying(SqliteRows):
    """Of a process that ends before the names change."""

    def switch(self, job_id: str, worker: str, mark: ChangeMark) -> bool:
        raise KeyboardInterrupt


def test_a_worker_that_died_before_the_switch_leaves_nothing_to_encode_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    fill(bench)
    job = begin(bench.rows)
    rows = Dying(tmp_path / "bifocal.db")
    rebuild = Rebuild(rows, bench.index, bench.encoder, pause=bench.ingestion.paused)
    with pytest.raises(KeyboardInterrupt):
        rebuild(claim(rows, lease_s=0), worker="w", should_stop=lambda: False)
    rows.close()
    n_texts = bench.embedder.n_texts
    assert bench.rows.job(job.id).n_done == 3
    assert bench.rows.collection("papers") == bench.collection
    run(bench, claim(bench.rows))
    assert bench.rows.collection("papers").settings == SHORT
    assert bench.embedder.n_texts == n_texts
    bench.close()
