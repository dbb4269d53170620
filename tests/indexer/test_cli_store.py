"""Commands that work on a store, run in this process, with an encoder that costs nothing."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.domain import JobKind, SplitterSettings
from app.engine.embedder import Embedder
from app.errors import InvalidInput
from app.settings import Settings
from app.storage.sqlite import SqliteRows
from indexer.cli import composition
from indexer.cli.commands import app
from tests.indexer.stand_ins import Bench, wait_until, working
from tests.substitutes import WordHashEmbedder

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BIFOCAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BIFOCAL_MODELS", str(tmp_path / "models"))
    return tmp_path / "home"


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> WordHashEmbedder:
    """One for all commands, that passes for the configured model."""
    embedder = WordHashEmbedder(fingerprint=composition.encoder_files(Settings()).fingerprint)

    def load(_settings: Settings) -> Embedder:
        return embedder

    monkeypatch.setattr(composition, "load_embedder", load)
    return embedder


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "water.txt").write_text("Water boils at one hundred degrees.")
    (folder / "sub" / "fire.md").write_text("Fire needs air to burn.")
    (folder / "picture.png").write_bytes(b"png")
    return folder


def bifocal(*arguments: object, exit_code: int = 0, typed: str | None = None) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=typed)
    assert result.exit_code == exit_code, result.output
    return result.output


def bifocal_json(*arguments: object) -> Any:
    return json.loads(bifocal(*arguments, "--json"))


pytestmark = pytest.mark.usefixtures("home", "embedder")


def test_a_folder_is_ingested_and_found(notes: Path) -> None:
    printed = bifocal("ingest", notes)
    assert "2 created; 2 new passages" in printed
    assert "1 files of other types are passed over" in printed
    hits = bifocal_json("search", "fire air")["hits"]
    assert [hit["document_id"] for hit in hits] == ["sub/fire.md", "water.txt"]
    assert hits[0]["passages"][0]["text"] == "Fire needs air to burn."


def test_ingesting_again_costs_the_model_nothing(notes: Path, embedder: WordHashEmbedder) -> None:
    bifocal("ingest", notes)
    n_texts = embedder.n_texts
    assert "2 unchanged; 0 new passages" in bifocal("ingest", notes)
    assert embedder.n_texts == n_texts


def test_rejected_files_are_listed_and_give_exit_code_1(notes: Path) -> None:
    (notes / "empty.txt").write_text("")
    printed = bifocal("ingest", notes, exit_code=1)
    assert "2 created, 1 rejected" in printed
    assert "  empty.txt: the file is empty; send one with text" in printed


def test_a_path_that_is_not_there_is_one_line(notes: Path) -> None:
    printed = bifocal("ingest", notes / "nowhere", exit_code=1)
    assert printed == f"bifocal: there is no file or folder {notes / 'nowhere'}\n"


def test_a_running_worker_does_the_work_instead_of_this_process(
    notes: Path, home: Path, monkeypatch: pytest.MonkeyPatch, embedder: WordHashEmbedder
) -> None:
    bench = Bench(home, embedder=embedder)

    def refuse(_settings: Settings) -> Embedder:
        raise AssertionError("this process loaded the model")

    monkeypatch.setattr(composition, "load_embedder", refuse)
    with working(bench):
        wait_until(bench.rows.worker_alive)
        assert "2 created" in bifocal("ingest", notes)
    bench.close()


def test_search_prints_hits_with_similarity_title_and_quote(notes: Path) -> None:
    bifocal("ingest", notes)
    printed = bifocal("search", "water boils", "--top-k", "1")
    first, second, timings = printed.splitlines()
    assert first.split() == [first.split()[0], "water.txt"]
    assert "Water boils at one hundred degrees.  (characters 0 to 35)" in second
    assert timings.startswith("encode ")


def test_symmetric_search_compares_whole_documents(notes: Path) -> None:
    bifocal("ingest", notes)
    hits = bifocal_json("search", "Fire needs air to burn.", "--symmetric")["hits"]
    assert (hits[0]["document_id"], hits[0]["passages"]) == ("sub/fire.md", [])


def test_search_takes_a_filter(notes: Path) -> None:
    (notes / "air.md").write_text("---\nlang: en\n---\nFire needs air, too.")
    bifocal("ingest", notes)
    condition = json.dumps({"field": "lang", "eq": "en"})
    for options in ([], ["--symmetric"]):
        hits = bifocal_json("search", "fire air", "--filter", condition, *options)["hits"]
        assert [hit["document_id"] for hit in hits] == ["air.md"]


@pytest.mark.parametrize(
    ("written", "message"), [("{", "the filter is no JSON"), ('{"a": 1}', "unknown operator 'a'")]
)
def test_a_filter_that_cannot_be_read_is_one_line(written: str, message: str) -> None:
    assert message in bifocal("search", "x", "--filter", written, exit_code=1)


def test_searching_a_collection_that_is_not_there_is_one_line() -> None:
    printed = bifocal("search", "x", "--collection", "nowhere", exit_code=1)
    assert printed == "bifocal: there is no collection 'nowhere'\n"


def test_a_blank_query_is_one_line(notes: Path) -> None:
    bifocal("ingest", notes)
    assert bifocal("search", " ", exit_code=1).startswith("bifocal: ")


def test_collections_are_created_listed_measured_and_deleted(notes: Path) -> None:
    assert "'papers' created" in bifocal("collections", "create", "papers", "--max-tokens", "128")
    assert "was there already" in bifocal("collections", "create", "papers", "--max-tokens", "128")
    bifocal("ingest", notes, "-c", "papers")
    [listed] = bifocal_json("collections", "list")
    assert (listed["name"], listed["n_documents"]) == ("papers", 2)
    stats = bifocal_json("collections", "stats", "papers")
    assert stats["splitter"]["max_tokens"] == 128
    assert stats["indexes"]["passages"]["n_tail"] == 2
    bifocal("collections", "delete", "papers", "--yes")
    assert bifocal_json("collections", "list") == []


def test_other_settings_for_an_existing_collection_are_refused() -> None:
    bifocal("collections", "create", "papers")
    printed = bifocal("collections", "create", "papers", "--max-tokens", "128", exit_code=1)
    assert printed.startswith("bifocal: ")
    assert "papers" in printed


def test_deleting_asks_first() -> None:
    bifocal("collections", "create", "papers")
    bifocal("collections", "delete", "papers", typed="n\n", exit_code=1)
    assert len(bifocal_json("collections", "list")) == 1


def test_jobs_are_listed_shown_and_cancelled(home: Path, notes: Path) -> None:
    bifocal("ingest", notes)
    rows = SqliteRows(home / "bifocal.db")
    waiting = rows.submit_job(rows.collection("default").key, JobKind.DELETE, [])
    rows.close()
    listed = bifocal_json("jobs", "list")
    assert [job["state"] for job in listed] == ["queued", "succeeded"]
    assert waiting.id in bifocal("jobs", "list")
    assert bifocal_json("jobs", "show", listed[1]["id"])["counts"] == {"created": 2}
    assert "cancelled" in bifocal("jobs", "cancel", waiting.id)
    assert "cannot be cancelled any more" in bifocal("jobs", "cancel", waiting.id, exit_code=1)


def test_a_shown_job_names_what_was_rejected(notes: Path) -> None:
    (notes / "empty.txt").write_text("")
    bifocal("ingest", notes, exit_code=1)
    [job] = bifocal_json("jobs", "list")
    [rejected] = bifocal_json("jobs", "show", job["id"])["rejected"]
    assert rejected["document_id"] == "empty.txt"
    assert "the file is empty" in bifocal("jobs", "show", job["id"])


def test_doctor_says_that_no_worker_runs() -> None:
    printed = bifocal("doctor")
    assert "worker: warning" in printed
    assert "none is running" in printed
    assert bifocal("doctor", "--worker", exit_code=1) == "worker: PROBLEM: none is running\n"


def test_doctor_finds_nothing_wrong_with_what_was_ingested(notes: Path) -> None:
    bifocal("ingest", notes)
    found = bifocal_json("doctor", "--sample", "10")
    assert {check["name"] for check in found["checks"] if check["faults"]} == {"worker"}


def test_doctor_names_a_fault_with_its_remedy_and_mends_it(home: Path, notes: Path) -> None:
    bifocal("ingest", notes)
    with closing(sqlite3.connect(home / "bifocal.db")) as connection, connection:
        connection.execute("UPDATE collections SET n_passages = 99")
        connection.execute("UPDATE passage_vectors SET vector = zeroblob(128)")
    printed = bifocal("doctor", exit_code=1)
    assert "counters: PROBLEM: collection default: n_passages is 99 and should be 2" in printed
    assert "[--repair would: split and encode these documents anew from their stored texts]" in printed
    printed = bifocal("doctor", "--repair")
    assert "repair: done: collection default: count documents and passages anew" in printed
    assert "PROBLEM" not in printed
    assert bifocal_json("search", "water boils", "--top-k", "1")["hits"][0]["document_id"] == "water.txt"
    assert bifocal_json("doctor", "--repair")["repairs"] == []


def test_doctor_does_not_repair_beside_a_worker(home: Path, notes: Path) -> None:
    bifocal("ingest", notes)
    with closing(sqlite3.connect(home / "bifocal.db")) as connection, connection:
        connection.execute("UPDATE collections SET n_passages = 99")
    rows = SqliteRows(home / "bifocal.db")
    rows.worker_heartbeat("w", lease_s=60)
    assert "stop it, then repeat this" in bifocal("doctor", "--repair", exit_code=1)
    rows.close()


def test_doctor_names_a_store_of_the_future(home: Path, notes: Path) -> None:
    bifocal("ingest", notes)
    with closing(sqlite3.connect(home / "bifocal.db")) as connection:
        connection.execute("PRAGMA user_version = 999")
    printed = bifocal("doctor", exit_code=1)
    assert "schema: PROBLEM" in printed
    assert "schema 999 was written by a newer version" in printed


def test_doctor_finds_a_running_worker(home: Path) -> None:
    rows = SqliteRows(home / "bifocal.db")
    rows.worker_heartbeat("w", lease_s=60)
    assert bifocal("doctor", "--worker") == "worker: running\n"
    rows.close()


def test_models_list_names_the_model_and_what_its_fingerprint_is_made_of() -> None:
    [model] = bifocal_json("models", "list")
    assert (model["role"], model["max_tokens"]) == ("bi-encoder", 256)
    assert model["parts"]


def test_a_damaged_store_is_one_line(home: Path) -> None:
    home.mkdir()
    (home / "bifocal.db").write_bytes(b"no database " * 1_000)
    printed = bifocal("jobs", "list", exit_code=1)
    assert "is damaged or is not a store" in printed
    assert len(printed.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_ingest_keeps_what_is_done_and_goes_on_when_repeated(
    tmp_path: Path, home: Path, number: signal.Signals
) -> None:
    n_files = 25
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(n_files):
        (folder / f"{i}.txt").write_text(f"{i} " + "words of a long text " * 2_000)
    command = [sys.executable, "-m", "tests.indexer.cli_process"]
    with subprocess.Popen(
        [*command, "0.5", "ingest", str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        wait_until((home / "bifocal.db").exists)
        rows = SqliteRows(home / "bifocal.db")
        wait_until(lambda: any(job.n_done for job in rows.jobs()))
        process.send_signal(number)
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted. What is done stays" in printed
    assert rows.n_unfinished_jobs() == 0
    assert not rows.worker_alive()
    n_done = rows.collection_stats(rows.collection("default").key).n_documents
    rows.close()
    assert 0 < n_done < n_files
    again = subprocess.run(
        [*command, "0", "ingest", str(folder)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert f"{n_files - n_done} created, {n_done} unchanged" in again.stdout


@pytest.mark.parametrize("name", ["My Notes", "../x", "a/b", "", "-a", "é", "a" * 64, "a\n"])
def test_a_name_that_the_service_could_not_be_asked_for_is_refused(tmp_path: Path, name: str) -> None:
    with composition.open_rows(Settings(home=tmp_path)) as rows:
        with pytest.raises(InvalidInput, match="a-z, 0-9, _ and - are allowed"):
            composition.create_collection(rows, name, Settings(home=tmp_path), SplitterSettings())
        assert rows.collections() == []


def test_what_cannot_be_read_in_a_folder_is_named_and_the_rest_is_ingested(notes: Path) -> None:
    (notes / "gone.txt").symlink_to(notes / "not there")
    (notes / "loop.txt").symlink_to(notes / "loop.txt")
    os.mkfifo(notes / "pipe.txt")
    locked = notes / "locked.txt"
    locked.write_text("secret")
    locked.chmod(0)
    may_read_all = os.access(locked, os.R_OK)  # as root
    printed = bifocal("ingest", notes, exit_code=0 if may_read_all else 1)
    assert f"{3 if may_read_all else 2} created" in printed
    assert may_read_all or "locked.txt" in printed
