"""The command as a user runs it: a process of its own, its exit code, what it prints."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.settings import Settings

ROOT = Path(__file__).parents[2]


def bifocal(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean: Mapping[str, str] = {k: v for k, v in os.environ.items() if not k.startswith("BIFOCAL_")}
    return subprocess.run(
        [sys.executable, "-m", "indexer", *arguments],
        cwd=ROOT,
        env={**clean, "COLUMNS": "200", "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def one_line_error(run: subprocess.CompletedProcess[str]) -> str:
    """What it wrote to standard error, which is a single line and no traceback."""
    assert run.returncode == 1, run.stderr
    [line] = run.stderr.splitlines()
    return line


def test_help_names_every_command() -> None:
    run = bifocal("--help")
    assert run.returncode == 0
    commands = [
        "up",
        "serve",
        "worker",
        "ingest",
        "search",
        "evaluate",
        "settings",
        "doctor",
        "backup",
        "restore",
        "collections",
        "aliases",
        "reindex",
        "rollback",
        "jobs",
        "models",
    ]
    assert [name for name in commands if f" {name} " not in run.stdout] == []


def test_help_imports_no_library_that_takes_long() -> None:
    code = "import sys, indexer.cli.commands; print([m for m in sys.modules if m in sys.argv])"
    heavy = ["numpy", "faiss", "tantivy", "pydantic", "uvicorn", "fastapi", "openvino", "torch", "tokenizers"]
    run = subprocess.run(
        [sys.executable, "-c", code, *heavy], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"


def test_without_arguments_it_shows_its_help() -> None:
    assert "Usage: bifocal" in bifocal().stdout


def test_settings_are_printed_with_their_values(tmp_path: Path) -> None:
    run = bifocal("settings", BIFOCAL_HOME=str(tmp_path), BIFOCAL_PORT="9000")
    assert run.returncode == 0
    assert str(tmp_path) in run.stdout
    assert all(f"BIFOCAL_{name.upper()}" in run.stdout for name in Settings.model_fields)


def test_an_unknown_variable_stops_every_command_and_is_named() -> None:
    assert "BIFOCAL_PROT" in one_line_error(bifocal("settings", BIFOCAL_PROT="9000"))


def test_a_bad_value_of_a_setting_is_one_line_with_name_and_value() -> None:
    assert one_line_error(bifocal("settings", BIFOCAL_PORT="abc")).startswith(
        "bifocal: setting BIFOCAL_PORT is 'abc': "
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
@pytest.mark.parametrize("command", ["serve", "up"])
def test_listening_beyond_this_machine_is_refused_with_the_reason(command: str, host: str) -> None:
    line = one_line_error(bifocal(command, "--host", host))
    assert f"refusing to listen on {host}" in line
    assert "BIFOCAL_INSECURE=true" in line


@pytest.mark.parametrize("command", ["serve", "up"])
def test_a_port_that_is_taken_is_named(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = one_line_error(bifocal(command, "--port", str(port)))
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in line
    assert "BIFOCAL_PORT" in line


@pytest.mark.parametrize("command", ["serve", "up", "worker"])
def test_a_home_that_cannot_be_used_is_said_once_and_nothing_is_started(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("no folder")
    options = [] if command == "worker" else ["--port", "0"]
    line = one_line_error(bifocal(command, *options, BIFOCAL_HOME=str(tmp_path / "file" / "home")))
    assert str(tmp_path / "file" / "home") in line


def test_limits_of_passages_are_those_of_the_service(tmp_path: Path) -> None:
    too_short = bifocal("collections", "create", "a", "--max-tokens", "16", BIFOCAL_HOME=str(tmp_path))
    assert too_short.returncode == 2
    assert "32" in too_short.stderr
    options = ["--max-tokens", "64", "--overlap-tokens", "33"]
    line = one_line_error(bifocal("collections", "create", "a", *options, BIFOCAL_HOME=str(tmp_path)))
    assert "at most half of --max-tokens, here 32" in line
