"""`bifocal backup` and `bifocal restore` as processes, and beside a service that is running."""

import json
from pathlib import Path

from fastapi.testclient import TestClient

from tests.api.stand_up import client_of, fill, settings_in, worker_of
from tests.indexer.test_cli_commands import bifocal, one_line_error


def quotes(client: TestClient) -> list[tuple[str, list[str], float]]:
    """Of a search. Scores of words are left out: they count what is replaced and not yet cleared, too."""
    query = {"query": "river", "top_k": 3}
    hits = client.post("/v1/collections/demo/search/asymmetric", json=query).json()["hits"]
    return sorted((h["document_id"], [p["text"] for p in h["passages"]], h["similarity"]) for h in hits)


def test_a_store_that_is_served_goes_through_a_file(tmp_path: Path) -> None:
    """Searched afterwards it gives the same hits, from a service and worker over the other folder."""
    settings = settings_in(tmp_path / "home")
    with worker_of(settings), client_of(settings) as client:
        fill(client)
        made = bifocal("backup", str(tmp_path / "file"), "--json", BIFOCAL_HOME=str(settings.home))
        before = quotes(client)
    assert made.returncode == 0, made.stderr
    described = json.loads(made.stdout)
    assert described["counts"]["documents"] == 3
    assert described["file_bytes"] == (tmp_path / "file").stat().st_size
    data = tmp_path / "elsewhere"
    restored = bifocal("restore", str(tmp_path / "file"), "--data", str(data))
    assert restored.returncode == 0, restored.stderr
    assert "1 collections, 3 documents" in restored.stdout
    settings = settings_in(data)
    with worker_of(settings), client_of(settings) as client:
        assert quotes(client) == before
        assert client.get("/v1/doctor").json()["status"] == "ok"


def test_what_cannot_be_done_is_one_line(tmp_path: Path) -> None:
    home, file = {"BIFOCAL_HOME": str(tmp_path / "home")}, str(tmp_path / "file")
    assert "there is no store" in one_line_error(bifocal("backup", file, **home))
    assert bifocal("keys", "create", "me", **home).returncode == 0
    made = bifocal("backup", file, **home)
    assert "verified; 0 collections, 0 documents" in made.stdout
    assert "never replaces a file" in one_line_error(bifocal("backup", file, **home))
    assert "--replace" in one_line_error(bifocal("restore", file, **home))
    replaced = bifocal("restore", file, "--replace", **home)
    assert "What was there before is in" in replaced.stdout
    Path(file).write_bytes(b"x" * 1_000)
    line = one_line_error(bifocal("restore", file, "--data", str(tmp_path / "other")))
    assert "is not a backup of Bifocal" in line
