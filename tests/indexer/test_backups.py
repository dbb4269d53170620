"""A store goes through a file to another folder and is the same; a file that is not right changes nothing."""

import gzip
import itertools
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import closing
from pathlib import Path

import pytest

from app.domain import Fusion, JobInput, JobKind, SearchSettings
from app.errors import BadFile, Conflict, StorageDamaged, StorageError
from app.keys import Scope, new_key
from app.settings import Settings
from app.storage.sqlite import SqliteRows
from indexer.backups.making import make_backup
from indexer.backups.restoring import restore_backup
from tests.indexer.ailing_store import NAME, Ailing, copy, fill
from tests.indexer.backed_up import altered, back_up, restore, rows_of, silent
from tests.storage.building import encoded, make_collection, write

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With settings, keys, and a job that waits."""
    home = tmp_path_factory.mktemp("healthy") / "home"
    fill(home)
    with Ailing(home).opened() as (rows, _):
        rows.set_search_settings(NAME, SearchSettings(Fusion("rrf", 0.5, 77), candidates=9))
        rows.add_key(new_key("someone", scopes=[Scope.READ], collections=None)[0])
        rows.submit_job(rows.collection(NAME).key, JobKind.DELETE, [JobInput(0, b'"d9"')])
    return home


@pytest.fixture
def store(healthy: Path, tmp_path: Path) -> Ailing:
    return copy(healthy, tmp_path / "home")


@pytest.fixture(scope="module")
def file(healthy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return back_up(Ailing(healthy), tmp_path_factory.mktemp("backups") / "store.tar.gz")


def test_a_restored_store_is_the_one_that_was_backed_up(store: Ailing, tmp_path: Path) -> None:
    restored = restore(back_up(store, tmp_path / "file"), tmp_path / "elsewhere" / "home")
    assert rows_of(restored) == rows_of(store)
    assert restored.documents() == store.documents()
    for word in ("word7", "word400"):
        assert restored.found(word) == store.found(word)
    assert restored.statuses() == {}


def test_classifiers_settings_keys_and_jobs_come_along(file: Path, tmp_path: Path) -> None:
    with restore(file, tmp_path / "home").opened() as (rows, _):
        assert rows.collection(NAME).search == SearchSettings(Fusion("rrf", 0.5, 77), candidates=9)
        assert rows.classifier("intents").version.labels
        assert [stored.key.name for stored in rows.api_keys()] == ["someone"]
        assert rows.n_unfinished_jobs() == 1


def test_indexes_are_built_before_the_store_is_there(file: Path, tmp_path: Path) -> None:
    restored = restore(file, tmp_path / "home")
    with restored.opened() as (rows, index):
        stats = index.stats(rows.collection(NAME), "passages")
    assert stats.n_base > 1_000
    assert stats.n_tail == 0


def test_the_secret_of_a_key_is_not_in_the_file(store: Ailing, tmp_path: Path) -> None:
    stored, secret = new_key("another", scopes=[Scope.ADMIN], collections=None)
    with store.opened() as (rows, _):
        rows.add_key(stored)
    content = gzip.decompress(back_up(store, tmp_path / "file").read_bytes())
    assert b"another" in content
    assert secret.encode() not in content


def test_a_running_job_and_its_worker_are_not_taken_along_as_running(store: Ailing, tmp_path: Path) -> None:
    with store.opened() as (rows, _):
        assert rows.worker_heartbeat("worker", lease_s=600)
        claimed = rows.claim_job("worker", lease_s=600)
        assert claimed is not None
        restored = restore(back_up(store, tmp_path / "file"), tmp_path / "restored")
    with restored.opened() as (rows, _):
        assert not rows.worker_alive()
        assert rows.job(claimed.job.id).state == "queued"


def test_a_backup_among_writes_has_each_write_wholly_or_not(tmp_path: Path) -> None:
    """Every write replaces all documents at once, with a text that has its number."""
    database = tmp_path / "home" / "bifocal.db"
    end = threading.Event()
    with closing(SqliteRows(database)) as rows:
        collection = make_collection(rows)

        def write_on() -> None:
            for i in itertools.count():
                if end.is_set():
                    return
                write(rows, collection, *(encoded(f"d{j}", f"text {i} of many. " * 50) for j in range(20)))

        writer = threading.Thread(target=write_on)
        writer.start()
        try:
            files = [tmp_path / f"{n}" for n in range(5)]
            seen = []
            for each in files:
                make_backup(database, each, silent)
                seen.append(rows.data_version())
        finally:
            end.set()
            writer.join()
    assert len(set(seen)) > 1
    for each in files:
        home = tmp_path / f"restored {each.name}"
        restore_backup(each, Settings(home=home), replace=False, progress=silent)
        with closing(SqliteRows(home / "bifocal.db")) as rows:
            restored = rows.collection(collection.name)
            heads = rows.documents(restored.key)
            texts = {rows.document(restored.key, head.id).document.text for head in heads}
        assert len(heads) in (0, 20)
        assert len(texts) == (1 if heads else 0)


def test_an_empty_store_goes_through(tmp_path: Path) -> None:
    SqliteRows(tmp_path / "home" / "bifocal.db").close()
    restored = restore(back_up(Ailing(tmp_path / "home"), tmp_path / "file"), tmp_path / "restored")
    with restored.opened() as (rows, _):
        assert rows.collections() == []


# Making one ---------------------------------------------------------------------------------------


def test_only_its_owner_may_read_a_backup(file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_exists_is_not_replaced(store: Ailing, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(Conflict, match="never replaces"):
        back_up(store, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_damaged_rows_are_not_backed_up(store: Ailing, tmp_path: Path) -> None:
    with store.database.open("r+b") as rows:
        rows.seek(store.database.stat().st_size // 2)
        rows.write(b"\0" * 80_000)
    with pytest.raises(StorageDamaged):
        back_up(store, tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_without_a_store_there_is_no_backup(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no store"):
        back_up(Ailing(tmp_path / "nowhere"), tmp_path / "file")


def test_a_failure_leaves_nothing_behind(store: Ailing, tmp_path: Path) -> None:
    def interrupt(stage: str, _share: float) -> None:
        if stage == "verify":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_backup(store.database, tmp_path / "file", interrupt)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


BACK_UP_UNTIL_KILLED = """
    import os, signal, sys
    from pathlib import Path
    from indexer.backups.making import make_backup

    def kill_at(stage, share):
        if stage == sys.argv[3]:
            os.kill(os.getpid(), signal.SIGKILL)

    make_backup(Path(sys.argv[1]), Path(sys.argv[2]), kill_at)
"""


@pytest.mark.parametrize("stage", ["copy", "pack", "verify"])
def test_killed_at_any_stage_nothing_has_the_final_name(store: Ailing, tmp_path: Path, stage: str) -> None:
    killed = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(BACK_UP_UNTIL_KILLED),
            store.database,
            tmp_path / "file",
            stage,
        ],
        cwd=ROOT,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "file").exists()
    back_up(store, tmp_path / "file")


# Where there is a store already ---------------------------------------------------------------------


def test_a_store_is_not_replaced_unless_that_is_asked_for(file: Path, store: Ailing) -> None:
    before = rows_of(store)
    with pytest.raises(Conflict, match="--replace"):
        restore(file, store.settings.home)
    assert rows_of(store) == before


def test_a_replaced_store_is_kept_and_works(file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Ailing(home).opened() as (rows, _):
        make_collection(rows, "older")
    restored = restore(file, home, is_replaced=True)
    assert restored.statuses() == {}
    [kept] = home.glob("replaced-*")
    with Ailing(kept).opened() as (rows, _):
        assert [collection.name for collection in rows.collections()] == ["older"]


def test_a_damaged_store_can_be_replaced(file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "bifocal.db").write_bytes(b"no database " * 1_000)
    assert restore(file, home, is_replaced=True).statuses() == {}


def test_a_store_in_use_is_not_replaced(file: Path, store: Ailing) -> None:
    with store.opened(), pytest.raises(Conflict, match="in use"):
        restore(file, store.settings.home, is_replaced=True)
    assert restore(file, store.settings.home, is_replaced=True).statuses() == {}


def test_a_file_that_is_not_right_leaves_the_store_that_is_there(
    file: Path, store: Ailing, tmp_path: Path
) -> None:
    before, names = rows_of(store), sorted(store.settings.home.iterdir())
    made = altered(file, tmp_path / "altered", lambda manifest: manifest.update(sha256="0" * 64))
    with pytest.raises(BadFile):
        restore(made, store.settings.home, is_replaced=True)
    assert rows_of(store) == before
    assert {path.name for path in store.settings.home.iterdir()} >= {path.name for path in names}
    assert not [*store.settings.home.glob("replaced-*"), *store.settings.home.glob(".unfinished-*")]


def test_an_interrupted_restore_leaves_nothing(file: Path, tmp_path: Path) -> None:
    def interrupt(stage: str, _share: float) -> None:
        if stage == "index":
            raise KeyboardInterrupt

    home = tmp_path / "home"
    with pytest.raises(KeyboardInterrupt):
        restore_backup(file, Ailing(home).settings, replace=False, progress=interrupt)
    assert not home.exists()
