from pathlib import Path

import pytest

from app.domain import JobState, OutcomeStatus
from app.settings import Settings
from indexer.cli.ingesting import BATCH_BYTES, BATCH_FILES, FileIngest, SourceFile, batches, find_files
from tests.indexer.stand_ins import Bench

TYPES = frozenset({".txt", ".md"})


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"text of {name}")


def ids(*paths: str | Path) -> list[str]:
    return [file.document_id for file in find_files([str(path) for path in paths], TYPES)[0]]


def test_ids_are_paths_relative_to_the_folder_given(tmp_path: Path) -> None:
    write(tmp_path, "b.txt", "sub/deep/a.md")
    assert ids(tmp_path) == ["b.txt", "sub/deep/a.md"]


def test_a_folder_gives_its_files_of_known_types_and_counts_the_others(tmp_path: Path) -> None:
    write(tmp_path, "a.TXT", "b.exe", ".hidden.txt", ".git/c.txt")
    files, n_passed_over = find_files([str(tmp_path)], TYPES)
    assert [file.document_id for file in files] == ["a.TXT"]
    assert n_passed_over == 1


def test_a_folder_inside_a_hidden_one_is_read(tmp_path: Path) -> None:
    write(tmp_path, ".cache/docs/a.txt")
    assert ids(tmp_path / ".cache" / "docs") == ["a.txt"]


def test_a_file_that_is_named_is_taken_whatever_its_type(tmp_path: Path) -> None:
    write(tmp_path, "a.exe")
    assert ids(tmp_path / "a.exe") == ["a.exe"]


def test_ids_of_a_pattern_are_relative_to_its_folder_without_wildcards(tmp_path: Path) -> None:
    write(tmp_path, "x/a.txt", "x/y/b.txt", "z/c.txt")
    assert ids(tmp_path / "x" / "**" / "*.txt") == ["a.txt", "y/b.txt"]


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    write(tmp_path, "a[1].txt")
    assert ids(tmp_path / "a[1].txt") == ["a[1].txt"]


def test_a_relative_pattern_has_the_current_folder_as_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.txt")
    monkeypatch.chdir(tmp_path)
    assert ids("*.txt") == ["a.txt"]


def test_the_same_file_given_twice_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, "a.txt")
    assert ids(tmp_path, tmp_path / "a.txt") == ["a.txt"]


def test_two_files_with_one_id_are_refused_with_both_paths(tmp_path: Path) -> None:
    write(tmp_path, "x/a.txt", "y/a.txt")
    with pytest.raises(ValueError, match=r"x/a\.txt and .*y/a\.txt would both have the id 'a\.txt'"):
        ids(tmp_path / "x", tmp_path / "y")


@pytest.mark.parametrize("name", ["nowhere", "nowhere*"])
def test_a_path_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ids(tmp_path / name)


def test_batches_are_bounded_by_files_and_by_bytes() -> None:
    small = [SourceFile(Path(f"{i}"), f"{i}", 1) for i in range(BATCH_FILES + 1)]
    assert [len(batch) for batch in batches(small)] == [BATCH_FILES, 1]
    large = [
        SourceFile(Path(f"{i}"), f"{i}", size) for i, size in enumerate([1, BATCH_BYTES, BATCH_BYTES, 1])
    ]
    assert [[f.document_id for f in batch] for batch in batches(large)] == [["0"], ["1"], ["2"], ["3"]]


def run(bench: Bench, folder: Path, settings: Settings | None = None) -> FileIngest:
    ingest = FileIngest(
        bench.rows, bench.collection, find_files([str(folder)], TYPES)[0], settings=settings or bench.settings
    )
    while not ingest.is_done:
        ingest.step()
        if bench.rows.n_unfinished_jobs():
            bench.process_next()
    return ingest


def test_files_become_documents_and_repeating_it_costs_nothing(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    write(folder, "a.txt", "sub/b.txt")
    first = run(bench, folder).report
    n_texts = bench.embedder.n_texts
    second = run(bench, folder).report
    assert (first.counts, first.n_passages) == ({OutcomeStatus.CREATED: 2}, 2)
    assert (second.counts, second.n_passages) == ({OutcomeStatus.UNCHANGED: 2}, 0)
    assert bench.embedder.n_texts == n_texts
    assert bench.stored("sub/b.txt").text == "text of sub/b.txt"


def test_what_is_wrong_with_single_files_is_reported_and_the_others_are_read(
    bench: Bench, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    write(folder, "good.txt", "gone.txt")
    (folder / "bad.txt").write_bytes(b"\xff")
    (folder / "big.txt").write_text("x" * 2_000)
    files = find_files([str(folder)], TYPES)[0]
    (folder / "gone.txt").unlink()
    ingest = FileIngest(
        bench.rows, bench.collection, files, settings=Settings(home=tmp_path, max_body_bytes=1_024)
    )
    ingest.step()
    bench.process_next()
    ingest.step()
    assert ingest.is_done
    assert ingest.report.n_bytes_done == ingest.n_bytes
    assert dict(ingest.report.errors) == {
        "bad.txt": "this is no text",
        "big.txt": "has 2000 bytes; at most 1024 are allowed (BIFOCAL_MAX_BODY_BYTES)",
        "gone.txt": "No such file or directory",
    }
    assert ingest.report.counts == {OutcomeStatus.REJECTED: 3, OutcomeStatus.CREATED: 1}


def test_only_a_few_jobs_wait_at_a_time(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.cli.ingesting.BATCH_FILES", 1)
    folder = tmp_path / "docs"
    write(folder, *(f"{i}.txt" for i in range(10)))
    ingest = FileIngest(
        bench.rows, bench.collection, find_files([str(folder)], TYPES)[0], settings=bench.settings
    )
    ingest.step()
    ingest.step()
    assert bench.rows.n_unfinished_jobs() == 3


def test_cancelling_calls_off_what_is_not_done_and_keeps_what_is(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.cli.ingesting.BATCH_FILES", 1)
    folder = tmp_path / "docs"
    write(folder, "a.txt", "b.txt")
    ingest = FileIngest(
        bench.rows, bench.collection, find_files([str(folder)], TYPES)[0], settings=bench.settings
    )
    ingest.step()
    bench.process_next()
    ingest.cancel()
    assert ingest.is_done
    states = [job.state for job in bench.rows.jobs()]
    assert states == [JobState.CANCELLED, JobState.SUCCEEDED]
    assert run(bench, folder).report.counts == {OutcomeStatus.UNCHANGED: 1, OutcomeStatus.CREATED: 1}


def test_a_failed_job_reports_each_of_its_files(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    write(folder, "a.txt", "b.txt")
    ingest = FileIngest(
        bench.rows, bench.collection, find_files([str(folder)], TYPES)[0], settings=bench.settings
    )
    ingest.step()
    claimed = bench.rows.claim_job("w", lease_s=60)
    assert claimed is not None
    bench.rows.finish_job(claimed.job.id, "w", JobState.FAILED, error="another model")
    ingest.step()
    assert ingest.report.errors == [("a.txt", "another model"), ("b.txt", "another model")]
