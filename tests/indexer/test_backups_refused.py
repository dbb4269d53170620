"""Files that are no backups, or damaged, or of the future: refused by name, and nothing is made."""

import gzip
import hashlib
import json
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.errors import BadFile, BifocalError, SchemaTooNew
from app.storage.sqlite import SqliteRows
from indexer.backups.archive import read_archive
from indexer.backups.making import make_backup
from tests.indexer.backed_up import altered, packed, restore, silent
from tests.storage.building import encoded, make_collection, write


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    with closing(SqliteRows(folder / "bifocal.db")) as rows:
        write(rows, make_collection(rows), encoded("a"))
        make_backup(folder / "bifocal.db", folder / "file", silent)
    return folder / "file"


def assert_refused(file: Path, home: Path, kind: type[BifocalError], match: str) -> None:
    """And nothing was made."""
    with pytest.raises(kind, match=match):
        restore(file, home)
    assert not home.exists()


@pytest.mark.parametrize(
    ("change", "kind", "match"),
    [
        (lambda m: m.update(format=2), SchemaTooNew, "format 2"),
        (lambda m: m.update(schema=999), SchemaTooNew, "schema 999"),
        (lambda m: m.update(kind="other"), BadFile, "something else"),
        (lambda m: m.pop("sha256"), BadFile, "lacks something"),
        (lambda m: m.update(sha256="0" * 64), BadFile, "digest"),
        (lambda m: m.update(size_bytes=5), BadFile, "not as large"),
        (lambda m: m.update(size_bytes="5"), BadFile, "no number"),
        (lambda m: m["counts"].update(documents=7), BadFile, "as it says"),
        (lambda m: m.update(counts=[]), BadFile, "lacks something"),
    ],
)
def test_a_manifest_that_is_not_right_is_named(
    file: Path,
    tmp_path: Path,
    change: Callable[[dict[str, Any]], object],
    kind: type[BifocalError],
    match: str,
) -> None:
    assert_refused(altered(file, tmp_path / "altered", change), tmp_path / "home", kind, match)


@pytest.mark.parametrize(
    "name", ["../evil", "/tmp/evil", "indexes/1/x", "bifocal.db-wal", "./manifest.json", "manifest.json\0x"]
)
def test_a_name_that_does_not_belong_is_refused_wherever_it_is(file: Path, tmp_path: Path, name: str) -> None:
    with tarfile.open(file) as archive:
        own = {each: archive.extractfile(each).read() for each in archive.getnames()}  # type: ignore[union-attr]
    for contents in ({name: b"evil", **own}, {**own, name: b"evil"}):
        made = packed(tmp_path / "made", contents)
        assert_refused(made, tmp_path / "home", BadFile, "not a backup of Bifocal")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_members_that_are_no_files_are_refused(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "made", "w:gz") as archive:
        member = tarfile.TarInfo("manifest.json")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    assert_refused(tmp_path / "made", tmp_path / "home", BadFile, "not a backup of Bifocal")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        b"\x1f\x8b",
        gzip.compress(b""),
        gzip.compress(b"x" * 5_000),
        bytes(range(256)) * 40,
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "made").write_bytes(content)
    assert_refused(tmp_path / "made", tmp_path / "home", BadFile, "not a backup of Bifocal")


def test_rows_of_something_else_are_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE a (b)")
    content = (tmp_path / "other.db").read_bytes()
    manifest = {
        "kind": "bifocal-backup",
        "format": 1,
        "version": "0",
        "created_at": "",
        "schema": 1,
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "counts": {},
    }
    made = packed(tmp_path / "made", {"manifest.json": json.dumps(manifest).encode(), "bifocal.db": content})
    assert_refused(made, tmp_path / "home", BadFile, "no store of Bifocal")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        restore(tmp_path / "nowhere", tmp_path / "home")


@given(share=st.floats(0, 1, exclude_max=True))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_cut_file_is_refused_wherever_it_is_cut(file: Path, tmp_path: Path, share: float) -> None:
    content = file.read_bytes()
    (tmp_path / "cut").write_bytes(content[: int(share * len(content))])
    with pytest.raises(BadFile):
        read_archive(tmp_path / "cut", 99, None, silent)


@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_is_noticed_or_changes_nothing(
    file: Path, tmp_path: Path, share: float, bit: int
) -> None:
    content = bytearray(file.read_bytes())
    content[int(share * len(content))] ^= 1 << bit
    (tmp_path / "flipped").write_bytes(content)
    (tmp_path / "rows").unlink(missing_ok=True)
    try:
        contents = read_archive(tmp_path / "flipped", 99, tmp_path / "rows", silent)
    except (BadFile, SchemaTooNew):
        return
    assert contents == read_archive(file, 99, None, silent)
