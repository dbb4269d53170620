"""`bifocal keys`, and where the service may listen with and without them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.keys import SECRET, Scope, recognised
from app.main import create_app
from app.settings import Settings
from app.storage.sqlite import SqliteRows
from indexer.cli.commands import app
from indexer.cli.serving import require_safe_address
from indexer.cli.upping import announcement, needs_key
from tests.api.serving import serving
from tests.substitutes import WordHashEmbedder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BIFOCAL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def keys(*arguments: str, exit_code: int = 0) -> tuple[str, str]:
    """Standard output and standard error."""
    result = CliRunner().invoke(app, ["keys", *arguments])
    assert result.exit_code == exit_code, result.output
    return result.stdout, result.stderr


def test_the_secret_alone_goes_to_standard_output_and_is_recognised(home: Path) -> None:
    shown, explained = keys("create", "reader")
    secret = shown.removesuffix("\n")
    assert SECRET.fullmatch(secret)
    assert "kept nowhere" in explained
    assert secret not in explained
    rows = SqliteRows(home / "bifocal.db")
    [stored] = rows.api_keys()
    rows.close()
    assert recognised(secret, {stored.key.id: stored}) == stored.key
    assert (stored.key.name, stored.key.collections) == ("reader", None)
    assert stored.key.scopes == frozenset({Scope.READ})


def test_the_store_has_no_secret(home: Path) -> None:
    secret = keys("create", "reader")[0].strip()
    random_part = secret.split("_", 2)[2].encode()
    files = list(home.iterdir())
    assert files
    assert not [path for path in files if random_part in path.read_bytes()]


def test_scopes_and_collections_are_listed() -> None:
    keys("create", "pipeline", "-s", "write", "-s", "read", "-c", "papers", "-c", "notes")
    [listed] = json.loads(keys("list", "--json")[0])
    assert listed["scopes"] == ["read", "write"]
    assert listed["collections"] == ["notes", "papers"]
    assert "secret" not in listed
    assert "pipeline" in keys("list")[0]


def test_a_revoked_key_is_shown_as_revoked_and_the_last_one_warned_of() -> None:
    created = json.loads(keys("create", "a", "--json")[0])
    keys("create", "b", "--scope", "admin")
    assert keys("revoke", created["id"]) == (f"Key {created['id']} (a) is revoked; 1 left.\n", "")
    first, second = json.loads(keys("list", "--json")[0])
    assert first["revoked_at"]
    assert "nobody gets in" in keys("revoke", second["id"])[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", " "], "1 to 100 printable characters"),
        (["create", "a\nb"], "printable"),
        (["create", "x" * 101], "1 to 100"),
        (["create", "x", "-c", "Not Allowed"], "no collection can be called 'Not Allowed'"),
        (["revoke", "000000000000"], "there is no key '000000000000'"),
    ],
)
def test_what_is_not_allowed_is_one_line(arguments: list[str], message: str) -> None:
    line = keys(*arguments, exit_code=1)[1]
    assert line.startswith("bifocal: ")
    assert message in line


def test_an_unknown_scope_is_refused_with_those_that_exist() -> None:
    assert "metrics" in keys("create", "x", "--scope", "root", exit_code=2)[1]


def test_with_a_key_the_service_may_listen_everywhere(home: Path) -> None:
    keys("create", "reader")
    require_safe_address(Settings(home=home, host="0.0.0.0"))


def test_without_one_that_counts_it_may_not(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        with pytest.raises(SystemExit):
            require_safe_address(Settings(home=home, host="0.0.0.0"))
        assert "bifocal keys create" in capsys.readouterr().err
        created = json.loads(keys("create", "a", "--json")[0])
        keys("revoke", created["id"])


def test_asking_for_keys_makes_no_store(home: Path) -> None:
    with pytest.raises(SystemExit):
        require_safe_address(Settings(home=home, host="::"))
    assert not home.exists()


def test_evaluate_sends_the_key_of_the_setting(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = keys("create", "judge")[0].strip()
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "river"}\n')
    (tmp_path / "qrels.tsv").write_text("1\ta\t1\n")
    files = ("--queries", str(tmp_path / "queries.jsonl"), "--qrels", str(tmp_path / "qrels.tsv"))
    application = create_app(Settings(home=home), load=lambda _: WordHashEmbedder())
    with serving(application) as url:
        command = ["evaluate", "--collection", "nothing", *files, "--url", url]
        refused = CliRunner().invoke(app, command)
        monkeypatch.setenv("BIFOCAL_API_KEY", secret)
        let_in = CliRunner().invoke(app, command)
    assert "answered 401: a key is needed" in refused.stderr
    assert "answered 404: there is no collection 'nothing'" in let_in.stderr


def test_what_up_says_to_ask_has_a_key_where_one_is_needed(home: Path) -> None:
    assert not needs_key(Settings(home=home))
    keys("create", "me")
    assert needs_key(Settings(home=home))
    line = announcement("http://h", with_demo=True, needs_key=True)
    assert '-H "Authorization: Bearer $KEY"' in line
    assert "Authorization" not in announcement("http://h", with_demo=True)


def test_the_key_in_the_settings_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIFOCAL_API_KEY", "bfc_hidden")
    for arguments in (["settings"], ["settings", "--json"]):
        printed = CliRunner().invoke(app, arguments).output
        assert "BIFOCAL_API_KEY" in printed
        assert "hidden" not in printed
    assert "hidden" not in repr(Settings.from_environment())
