"""`bifocal aliases`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.storage.sqlite import SqliteRows
from indexer.cli.commands import app
from tests.storage.building import make_collection


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the collections `books` and `films`."""
    monkeypatch.setenv("BIFOCAL_HOME", str(tmp_path))
    rows = SqliteRows(tmp_path / "bifocal.db")
    for name in ("books", "films"):
        make_collection(rows, name)
    rows.close()
    return tmp_path


def aliases(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["aliases", *arguments])
    assert result.exit_code == exit_code, result.output
    return result.output


def test_an_alias_is_set_moved_listed_and_deleted() -> None:
    assert aliases("set", "current", "books") == "Alias 'current' leads to the collection 'books'.\n"
    aliases("set", "current", "films")
    [listed] = json.loads(aliases("list", "--json"))
    assert (listed["name"], listed["collection"]) == ("current", "films")
    assert "films" in aliases("list")
    assert aliases("delete", "current") == "Alias 'current' deleted.\n"
    assert json.loads(aliases("list", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["set", "Not Allowed", "books"], "an alias cannot be called 'Not Allowed'"),
        (["set", "current", "nowhere"], "there is no collection 'nowhere'"),
        (["set", "films", "books"], "'films' is a collection"),
        (["delete", "nowhere"], "there is no alias 'nowhere'"),
    ],
)
def test_what_is_not_allowed_is_one_line(arguments: list[str], message: str) -> None:
    line = aliases(*arguments, exit_code=1)
    assert line.startswith("bifocal: ")
    assert message in line


def test_a_collection_with_aliases_is_not_deleted() -> None:
    aliases("set", "current", "books")
    result = CliRunner().invoke(app, ["collections", "delete", "books", "--yes"])
    assert result.exit_code == 1
    assert "aliases lead to the collection 'books': current" in result.output
