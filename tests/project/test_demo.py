import json
import os
from pathlib import Path
from typing import Any

import pytest

from indexer.calibration import TEXTS
from indexer.demo import CORPUS
from indexer.demo.build import ARTICLES, build
from tests.project.repository import ROOT, read

MAX_BYTES = 400_000
"""It is cloned and installed by everyone."""


@pytest.fixture(scope="module")
def demo() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def test_corpus_is_a_few_hundred_paragraphs_and_small(demo: list[dict[str, Any]]) -> None:
    assert 300 <= len(demo) <= 500
    assert CORPUS.stat().st_size <= MAX_BYTES


def test_ids_are_article_and_position(demo: list[dict[str, Any]]) -> None:
    expected = []
    for article in ARTICLES:
        n_paragraphs = sum(document["id"].startswith(f"{article}/") for document in demo)
        assert n_paragraphs > 0
        expected += [f"{article}/{number}" for number in range(n_paragraphs)]
    assert [document["id"] for document in demo] == expected


def test_every_article_is_attributed(demo: list[dict[str, Any]]) -> None:
    notice = " ".join(read("NOTICE").split())
    titles = {document["title"] for document in demo}
    assert {title for title in titles if title not in notice} == set()
    assert all(name in notice for name in ("Rajpurkar", "CC BY-SA 4.0", "contributors"))


def test_every_source_of_calibration_texts_is_attributed() -> None:
    lines = TEXTS.read_text(encoding="utf-8").splitlines()
    sources = {json.loads(line)["source"] for line in lines}
    notice = read("NOTICE")
    assert str(TEXTS.relative_to(ROOT)) in notice
    assert {source for source in sources if f"\n  {source} " not in notice} == set()


def test_every_document_names_the_article_it_is_from(demo: list[dict[str, Any]]) -> None:
    for document in demo:
        name = document["id"].rpartition("/")[0]
        assert document["metadata"] == {
            "source": "wikipedia",
            "article": document["title"],
            "url": f"https://en.wikipedia.org/wiki/{name}",
        }


def test_building_again_gives_the_same_file(tmp_path: Path) -> None:
    data = Path(os.environ.get("BIFOCAL_DATA", ROOT.parent / "shared" / "data"))
    squad = data / "qa" / "squad" / "dev-v1.1.json.gz"
    if not squad.exists():
        pytest.skip(f"needs SQuAD 1.1 dev at {squad}")
    build(squad, tmp_path / "demo.jsonl")
    assert (tmp_path / "demo.jsonl").read_bytes() == CORPUS.read_bytes()
