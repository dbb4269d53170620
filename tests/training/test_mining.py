"""`bifocal mine` from judged questions to groups: real rows and index, an encoder that costs nothing."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.engine.embedder import Embedder
from app.settings import Settings
from indexer.cli import composition
from indexer.cli.commands import app
from indexer.training.joint.groups import NO_ANSWER, Group, read_groups
from tests.indexer.judged import write_folder
from tests.substitutes import WordHashEmbedder


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Passes for the configured model."""
    embedder = WordHashEmbedder(fingerprint=composition.encoder_files(Settings()).fingerprint)

    def load(_settings: Settings) -> Embedder:
        return embedder

    monkeypatch.setattr(composition, "load_embedder", load)
    monkeypatch.setattr("indexer.cli.mining.open_embedder", composition.open_embedder)
    monkeypatch.setenv("BIFOCAL_HOME", str(tmp_path / "untouched"))


def mine(tmp_path: Path, *arguments: object, exit_code: int = 0) -> list[Group]:
    output = tmp_path / "groups.jsonl"
    result = CliRunner().invoke(app, ["mine", "--output", str(output), *(str(a) for a in arguments)])
    assert result.exit_code == exit_code, result.output
    return list(read_groups(output)) if exit_code == 0 else []


def test_what_is_judged_relevant_is_the_positive_and_never_a_negative(tmp_path: Path) -> None:
    groups = mine(tmp_path, "--data", write_folder(tmp_path / "animals"), "--split", "test")
    assert {group.question for group in groups} == {
        "otter food0",
        "where does the lynx eat food9",
        "newt place19",
    }
    for group in groups:
        first, *others = group.candidates
        assert first.relevance == 1
        assert first.title is not None
        assert first.title.lower() in group.question
        assert [other.relevance for other in others] == [0, 0]
        assert first.text not in [other.text for other in others]


def test_a_document_that_answers_the_same_question_is_no_negative(tmp_path: Path) -> None:
    queries = [
        {"_id": "a", "text": "What eats food0?"},
        {"_id": "b", "text": "what eats FOOD0"},
    ]
    qrels = [("a", "d0", 1), ("b", "d1", 1)]
    folder = write_folder(tmp_path / "animals", queries=queries, qrels=qrels)
    for group in mine(tmp_path, "--data", folder, "--split", "test", "--negatives", 12):
        texts = " ".join(candidate.text for candidate in group.candidates[1:])
        assert "otter" not in texts
        assert "heron" not in texts


def squad_file(tmp_path: Path) -> Path:
    paragraphs = [
        {
            "context": f"The town number{i} has a bridge of stone and {i + 10} towers, one of them red.",
            "qas": [
                {
                    "id": f"q{i}",
                    "question": f"How many towers has the town number{i}?",
                    "answers": [{"text": f"{i + 10} towers", "answer_start": 43}],
                }
            ],
        }
        for i in range(8)
    ]
    file = tmp_path / "train.json"
    file.write_text(json.dumps({"data": [{"title": "Towns", "paragraphs": paragraphs}]}))
    return file


def test_passages_of_a_squad_file_bear_answers_or_none(tmp_path: Path) -> None:
    groups = mine(tmp_path, "--squad", squad_file(tmp_path), "--negatives", 3)
    assert len(groups) == 8
    for group in groups:
        first, *others = group.candidates
        assert first.answer not in (None, NO_ANSWER)
        start, end = first.answer
        assert first.text[start:end].endswith(" towers")
        assert [other.answer for other in others] == [NO_ANSWER] * 3
        assert all(first.text[start:end] not in other.text for other in others)


def test_a_seed_decides_which_questions_are_mined(tmp_path: Path) -> None:
    file = squad_file(tmp_path)
    home = ("--home", tmp_path / "home")
    once = mine(tmp_path, "--squad", file, "--limit", 3, *home)
    assert len(once) == 3
    assert mine(tmp_path, "--squad", file, "--limit", 3, *home) == once
    assert mine(tmp_path, "--squad", file, "--limit", 3, "--seed", 2, *home) != once


def test_questions_without_enough_negatives_are_left_out(tmp_path: Path) -> None:
    assert mine(tmp_path, "--squad", squad_file(tmp_path), "--negatives", 8) == []


def test_a_title_finds_the_text_below_it_among_texts_of_like_titles(tmp_path: Path) -> None:
    groups = mine(tmp_path, "--data", write_folder(tmp_path / "animals"), "--titles", "--limit", 4)
    assert len(groups) == 4
    for group in groups:
        first, *others = group.candidates
        assert group.question.lower() in first.text.lower()
        assert [c.relevance for c in group.candidates] == [1, 0, 0]
        assert {c.title for c in group.candidates} == {None}
        assert {c.answer for c in group.candidates} == {None}
        assert first.text not in [other.text for other in others]


@pytest.mark.parametrize("arguments", [(), ("--data", "a", "--squad", "b"), ("--squad", "b", "--titles")])
def test_one_kind_of_source_is_needed(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    mine(tmp_path, *arguments, exit_code=1)


def test_a_split_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "animals")
    result = CliRunner().invoke(app, ["mine", "--output", str(tmp_path / "g.jsonl"), "--data", str(folder)])
    assert result.exit_code != 0
    assert "has no split 'train'; there are test" in result.output
