"""Every kind of damage is found by name, and what is derived is made anew from the rest."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from app.domain import CollectionSettings, JobInput, JobKind
from app.errors import Conflict
from indexer.mending import Mender
from tests.indexer.ailing_store import N_DELETED, N_DOCUMENTS, N_LATER, NAME, Ailing, copy, fill

FIRST = f"(SELECT key FROM documents WHERE id = 'd{N_DELETED}')"
"""A document in the base."""
LATER = f"(SELECT key FROM documents WHERE id = 'd{N_DOCUMENTS}')"
"""A document beside the base."""
ITS_PASSAGE = "(SELECT min(key) FROM passages WHERE document_key = {})"
OTHER_VECTOR = np.eye(1, 64, dtype=np.float16).tobytes()


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("healthy") / "home"
    fill(home)
    return home


@pytest.fixture
def store(healthy: Path, tmp_path: Path) -> Ailing:
    return copy(healthy, tmp_path / "home")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def a_word_file(store: Ailing) -> Path:
    return max(store.words().glob("*.idx"), key=lambda path: path.stat().st_size)


def put_manifest_of_the_future(store: Ailing) -> None:
    """Written by a version that has other fields, and published."""
    path = store.base() / "manifest.json"
    manifest = json.loads(path.read_bytes()) | {"format": 99, "colour": "blue"}
    path.write_text(json.dumps(manifest))
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    store.execute("UPDATE generations SET checksum = ? WHERE view = 'passages'", checksum)


def lose_a_document(store: Ailing) -> None:
    """With its passages and vectors, as if it had never been; the indexes still have it."""
    for statement in (
        f"DELETE FROM passage_vectors WHERE document_key = {FIRST}",
        f"DELETE FROM document_vectors WHERE key = {FIRST}",
        f"DELETE FROM passages WHERE document_key = {FIRST}",
        f"DELETE FROM texts WHERE document_key = {FIRST}",
        f"DELETE FROM metadata_values WHERE document_key = {FIRST}",
        f"DELETE FROM documents WHERE key = {FIRST}",
    ):
        store.execute(statement)


def leave_unfinished(store: Ailing) -> None:
    (store.base().parent / ".unfinished-passages-9").mkdir()


def leave_unknown(store: Ailing) -> None:
    (store.indexes / "77" / "words").mkdir(parents=True)


DERIVED: dict[str, tuple[Callable[[Ailing], None], set[str]]] = {
    "bit flipped in the base's codes": (lambda s: flip(s.base() / "candidates.faiss"), {"base-files"}),
    "base's codes cut": (lambda s: cut(s.base() / "candidates.faiss"), {"base-files"}),
    "bit flipped in the base's vectors": (
        lambda s: flip(s.base("documents") / "vectors.f16"),
        {"base-files"},
    ),
    "manifest missing": (lambda s: (s.base() / "manifest.json").unlink(), {"base-files"}),
    "manifest of the future": (put_manifest_of_the_future, {"base-files"}),
    "base folder missing": (lambda s: shutil.rmtree(s.base()), {"base-files"}),
    "keys of the base cut": (lambda s: cut(s.base() / "keys.i64"), {"base-files", "base-counts"}),
    "bit flipped in words": (lambda s: flip(a_word_file(s)), {"words"}),
    "words cut": (lambda s: cut(a_word_file(s)), {"words"}),
    "words missing": (lambda s: shutil.rmtree(s.words().parent), {"words"}),
    "vector altered": (
        lambda s: s.execute(
            f"UPDATE passage_vectors SET vector = ? WHERE key = {ITS_PASSAGE.format(FIRST)}", OTHER_VECTOR
        ),
        {"vectors", "encoding"},
    ),
    "vector beside the base altered": (
        lambda s: s.execute(
            f"UPDATE passage_vectors SET vector = ? WHERE key = {ITS_PASSAGE.format(LATER)}", OTHER_VECTOR
        ),
        {"encoding"},
    ),
    "document's vector altered": (
        lambda s: s.execute(f"UPDATE document_vectors SET vector = ? WHERE key = {LATER}", OTHER_VECTOR),
        {"encoding"},
    ),
    "vector of another length": (
        lambda s: s.execute(
            f"UPDATE passage_vectors SET vector = ? WHERE key = {ITS_PASSAGE.format(LATER)}", b"\0" * 128
        ),
        {"vectors", "encoding"},
    ),
    "vector cut": (
        lambda s: s.execute(
            f"UPDATE passage_vectors SET vector = ? WHERE key = {ITS_PASSAGE.format(LATER)}", b"\0" * 99
        ),
        {"completeness"},
    ),
    "vector missing": (
        lambda s: s.execute(f"DELETE FROM passage_vectors WHERE key = {ITS_PASSAGE.format(FIRST)}"),
        {"completeness", "base-counts", "words"},
    ),
    "document's vector missing": (
        lambda s: s.execute(f"DELETE FROM document_vectors WHERE key = {LATER}"),
        {"completeness"},
    ),
    "passage missing": (
        lambda s: s.execute(f"DELETE FROM passages WHERE key = {ITS_PASSAGE.format(FIRST)}"),
        {"completeness", "references", "texts"},
    ),
    "passage outside its text": (
        lambda s: s.execute(f"UPDATE passages SET end_char = 100000 WHERE key = {ITS_PASSAGE.format(LATER)}"),
        {"texts"},
    ),
    "passage shifted": (
        lambda s: s.execute(
            f"UPDATE passages SET start_char = start_char + 9 WHERE key = {ITS_PASSAGE.format(LATER)}"
        ),
        {"texts"},
    ),
    "vector of no passage": (
        lambda s: s.execute(
            "INSERT INTO passage_vectors SELECT 1000000, collection_key, document_key, vector "
            "FROM passage_vectors LIMIT 1"
        ),
        {"references", "counters"},
    ),
    "counter altered": (lambda s: s.execute("UPDATE collections SET n_documents = 1"), {"counters"}),
    "keys about to be used again": (lambda s: s.execute("UPDATE last_keys SET key = 5"), {"counters"}),
    "document gone from the rows alone": (
        lose_a_document,
        {"counters", "base-counts", "words"},
    ),
    "metadata not indexed": (
        lambda s: s.execute(f"DELETE FROM metadata_values WHERE document_key = {FIRST}"),
        {"metadata"},
    ),
    "metadata indexed otherwise": (
        lambda s: s.execute(f"UPDATE metadata_values SET value = 7.5 WHERE document_key = {FIRST}"),
        {"metadata"},
    ),
    "metadata indexed of no document": (
        lambda s: s.execute(
            "INSERT INTO metadata_values SELECT field_key, kind, value, 999999 FROM metadata_values LIMIT 1"
        ),
        {"metadata", "references"},
    ),
    "folder of no collection": (leave_unknown, {"folders"}),
    "base left unfinished": (leave_unfinished, {"folders"}),
}

BEYOND_REPAIR: dict[str, tuple[Callable[[Ailing], None], set[str]]] = {
    "another encoder's collection": (
        lambda s: s.execute("UPDATE collections SET fingerprint = 'another'"),
        {"encoder"},
    ),
    "another encoder's classifier": (
        lambda s: s.execute("UPDATE classifiers SET fingerprint = 'another'"),
        {"classifiers"},
    ),
    "schema of the future": (lambda s: s.execute("PRAGMA user_version = 999"), {"schema"}),
    "no store": (lambda s: s.execute("PRAGMA application_id = 7"), {"schema"}),
    "index of the rows missing": (lambda s: s.execute("DROP INDEX passages_of_document"), {"schema"}),
    "trigger of somebody": (
        lambda s: s.execute("CREATE TRIGGER evil AFTER INSERT ON documents BEGIN DELETE FROM documents; END"),
        {"schema"},
    ),
    "text altered": (
        lambda s: s.execute(
            "UPDATE texts SET piece = CAST(replace(piece, 'word', 'work') AS BLOB) "
            f"WHERE document_key = {LATER}"
        ),
        {"texts", "encoding"},
    ),
    "text of no characters": (
        lambda s: s.execute(f"UPDATE texts SET piece = x'ff' || piece WHERE document_key = {LATER}"),
        {"texts", "encoding"},
    ),
    "text missing": (
        lambda s: s.execute(f"DELETE FROM texts WHERE document_key = {LATER}"),
        {"texts", "encoding"},
    ),
    "rows that everyone may write": (lambda s: s.database.chmod(0o666), {"permissions"}),
}


def test_a_healthy_store_has_no_faults(store: Ailing) -> None:
    with store.opened() as (rows, _):
        assert rows.worker_heartbeat("worker", lease_s=60)
        checks = store.examined()
    assert {name: check.faults for name, check in checks.items() if check.faults} == {}
    assert all(check.is_complete for check in checks.values())
    assert len(checks) == 20


@pytest.mark.parametrize("damage", DERIVED)
def test_damage_of_what_is_derived_is_found_by_name_and_mended(store: Ailing, damage: str) -> None:
    do_damage, names = DERIVED[damage]
    found_before = store.found("word7")
    do_damage(store)
    assert set(store.statuses()) >= names
    documents = store.documents()
    mended = store.repaired()
    assert mended
    assert all(each.is_done for each in mended)
    assert store.statuses() == {}
    assert store.documents() == documents
    if damage != "document gone from the rows alone":
        assert len(documents) == N_DOCUMENTS - N_DELETED + N_LATER
        assert [sorted(ids) for ids in store.found("word7")] == [sorted(ids) for ids in found_before]


@pytest.mark.parametrize("damage", BEYOND_REPAIR)
def test_damage_of_the_truth_is_found_and_left_as_it_is(store: Ailing, damage: str) -> None:
    do_damage, names = BEYOND_REPAIR[damage]
    do_damage(store)
    before = store.statuses()
    assert set(before) >= names
    assert all(before[name] == "problem" for name in names - {"permissions"})
    if "schema" not in names:
        assert not any(each.is_done for each in store.repaired())
        assert set(store.statuses()) == set(before)


def test_a_former_form_that_another_encoder_made_is_a_warning(store: Ailing) -> None:
    with store.opened() as (rows, _):
        rows.create_collection("former", CollectionSettings(), fingerprint="another", model="another")
        key = rows.collection(NAME).key
    store.execute("UPDATE collections SET standby_of = ? WHERE name = 'former'", key)
    assert store.statuses() == {"encoder": "warning"}


def test_damaged_pages_of_the_rows_are_found(store: Ailing) -> None:
    """In the middle of the file, all zero."""
    page_bytes = 4096
    with store.database.open("r+b") as file:
        n_pages = store.database.stat().st_size // page_bytes
        for page in range(n_pages // 2, n_pages // 2 + 20):
            file.seek(page * page_bytes)
            file.write(b"\0" * page_bytes)
    found = store.examined()
    assert found["integrity"].status == "problem"


def test_a_file_that_is_no_database_is_named(store: Ailing) -> None:
    store.database.write_bytes(b"no database " * 1_000)
    found = store.examined()
    assert found["schema"].status == "problem"
    assert "damaged or is not a store" in found["schema"].faults[0].what


def test_a_job_of_a_dead_worker_is_found_and_given_back(store: Ailing) -> None:
    with store.opened() as (rows, _):
        collection = rows.collection(NAME)
        job = rows.submit_job(collection.key, JobKind.DELETE, [JobInput(0, b'"d9"')])
        assert rows.claim_job("dead", lease_s=60)
        store.execute("UPDATE jobs SET leased_until = 1 WHERE id = ?", job.id)
        assert store.statuses() == {"jobs": "warning"}
        store.repaired()
        assert rows.job(job.id).state == "queued"
    assert store.statuses() == {}


def test_what_is_encoded_anew_gets_new_keys(store: Ailing) -> None:
    """Indexes that are open follow keys: a vector never changes under its own."""
    passage = ITS_PASSAGE.format(LATER)
    store.execute(f"UPDATE passage_vectors SET vector = ? WHERE key = {passage}", OTHER_VECTOR)
    key = store.value(f"SELECT {passage}")
    with store.opened() as (rows, index):
        collection = rows.collection(NAME)
        query = np.eye(1, 64, dtype=np.float32)[0]
        assert index.nearest(collection, "passages", query, depth=1).keys.tolist() == [key]
        store.repaired()
        assert key not in index.nearest(collection, "passages", query, depth=2_000).keys.tolist()


def test_a_repair_is_refused_while_a_worker_runs(store: Ailing) -> None:
    flip(a_word_file(store))
    checks = list(store.examined().values())
    with store.opened() as (rows, index):
        assert rows.worker_heartbeat("worker", lease_s=60)
        with pytest.raises(Conflict, match="stop it"):
            Mender(rows, index, store.indexes, lambda: store.encoder).mend(checks)


def test_nothing_is_done_to_a_healthy_store(store: Ailing) -> None:
    assert store.repaired() == []


def test_without_time_nothing_is_found_and_that_is_said(store: Ailing) -> None:
    flip(store.base() / "vectors.f16")
    found = store.examined(seconds=0.0)
    assert not found["base-files"].is_complete
    assert not found["texts"].is_complete
    assert found["base-files"].faults == ()


def test_large_files_and_many_rows_are_looked_at_in_part_where_that_is_asked_for(store: Ailing) -> None:
    flip(store.base() / "vectors.f16")
    found = store.examined(max_digest_bytes=1_000.0, max_rows=10)
    for name in ("base-files", "vectors", "texts"):
        assert found[name].faults == ()
        assert not found[name].is_complete
    assert store.examined()["base-files"].faults


def test_a_dropped_collection_that_is_not_yet_purged_is_no_fault(store: Ailing) -> None:
    with store.opened() as (rows, _):
        rows.drop_collection(NAME)
        assert store.statuses() == {}
        rows.purge_dropped(limit=50)
        assert store.statuses() == {}


def test_examining_changes_nothing(store: Ailing) -> None:
    flip(store.base() / "vectors.f16")
    store.execute("UPDATE collections SET n_documents = 1")
    with closing(sqlite3.connect(store.database)) as connection:
        before = list(connection.iterdump())
        store.statuses()
        assert list(connection.iterdump()) == before
