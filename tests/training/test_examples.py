"""Whatever is wrong with an example is said with its file and line."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.errors import BadFile, InvalidInput
from indexer.training.examples.labelled import hold_out, labels_of, read_labelled
from indexer.training.examples.pairs import Positive, ScoredPair, read_pairs, scaled
from indexer.training.examples.questions import read_questions
from indexer.training.examples.tagged import read_tagged, tags_of
from indexer.training.request import TrainingRequest
from indexer.training.splits import find_splits
from tests.training.tiny_bases import squad, write_lines, write_tagged


def refused(message: str, path: Path, line: int | None = None) -> Any:
    where = f"{path}, line {line}: " if line else str(path)
    return pytest.raises(BadFile, match=re.escape(where) + ".*" + message)


# Texts with labels


def test_labelled_texts_know_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text('{"text": "a", "label": "x"}\n\n{"text": "b", "label": 7}\n', encoding="utf-8")
    assert [(e.text, e.label, e.line) for e in read_labelled(path)] == [("a", "x", 1), ("b", "7", 3)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"label": "x"}, "'text' is missing"),
        ({"text": 3, "label": "x"}, "'text' is no string"),
        ({"text": " \t", "label": "x"}, "'text' is blank"),
        ({"text": "b"}, "'label' is missing"),
        ({"text": "b", "label": 0.5}, "'label' is no string or whole number"),
    ],
)
def test_a_malformed_example_is_refused(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    path = write_lines(tmp_path / "train.jsonl", [{"text": "a", "label": "x"}, row])
    with refused(message, path, 2):
        read_labelled(path)


def test_a_label_that_training_lacks_is_refused_in_another_split(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "test.jsonl", [{"text": "a", "label": "x"}, {"text": "b", "label": "z"}])
    with refused("'z' does not occur in training; there are x, y", path, 2):
        read_labelled(path, allowed=["x", "y"])


def test_an_empty_data_set_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "train.jsonl", [])
    with refused("has no example", path):
        read_labelled(path)


def test_a_label_with_one_example_is_refused(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": label} for label in ("x", "x", "y", "z", "z")]
    path = write_lines(tmp_path / "train.jsonl", rows)
    with refused("'y' has this one example alone", path, 3):
        labels_of(read_labelled(path), tmp_path)


def test_one_label_alone_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "train.jsonl", [{"text": "a", "label": "x"}] * 2)
    with refused("has the label 'x' alone", path):
        labels_of(read_labelled(path), tmp_path)


def test_labels_keep_the_order_of_their_file(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "train.jsonl", [{"text": "a", "label": i % 2} for i in range(4)])
    assert labels_of(read_labelled(path), tmp_path) == ["0", "1"]
    (tmp_path / "labels.json").write_text('["1", "0"]', encoding="utf-8")
    assert labels_of(read_labelled(path), tmp_path) == ["1", "0"]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('["x"]', r"line 3: the label 'y' is not in .*labels\.json"),
        ('["x", "y", "w"]', "labels without an example: w"),
        ('["x", "x"]', "no list of labels that differ"),
        ("{", "is no JSON"),
    ],
)
def test_labels_that_do_not_match_are_refused(tmp_path: Path, declared: str, message: str) -> None:
    rows = [{"text": "a", "label": label} for label in ("x", "x", "y", "y")]
    examples = read_labelled(write_lines(tmp_path / "train.jsonl", rows))
    (tmp_path / "labels.json").write_text(declared, encoding="utf-8")
    with pytest.raises(BadFile, match=message):
        labels_of(examples, tmp_path)


def test_every_label_is_on_both_sides_of_what_is_held_out(tmp_path: Path) -> None:
    rows = [{"text": f"{label}{i}", "label": label} for label, n in (("x", 2), ("y", 40)) for i in range(n)]
    examples = read_labelled(write_lines(tmp_path / "train.jsonl", rows))
    kept, held_out = hold_out(examples, share=0.1, seed=1)
    assert {e.label for e in kept} == {e.label for e in held_out} == {"x", "y"}
    assert len(held_out) == 1 + 4
    assert sorted(e.text for e in [*kept, *held_out]) == sorted(e.text for e in examples)


# Sentences with tags


def test_sentences_end_at_blank_lines_and_know_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "train.conll"
    path.write_text("\nAnna\tB-PER\nran\tO\n\n\nOslo\tB-LOC\n", encoding="utf-8")
    assert [(s.words, s.tags, s.line) for s in read_tagged(path)] == [
        (("Anna", "ran"), ("B-PER", "O"), 2),
        (("Oslo",), ("B-LOC",), 6),
    ]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("ran", "no word and tag"),
        ("ran\tVERB", "'VERB' is no tag of IOB2"),
        ("ran\tI-LOC", "I-LOC follows B-PER; in IOB2 an entity begins with B-LOC"),
        ("ran\tB-", "'B-' is no tag of IOB2"),
    ],
)
def test_a_line_that_is_not_iob2_is_refused(tmp_path: Path, second: str, message: str) -> None:
    path = tmp_path / "train.conll"
    path.write_text(f"Anna\tB-PER\n{second}\n", encoding="utf-8")
    with refused(message, path, 2):
        read_tagged(path)


def test_a_tag_that_training_lacks_is_refused_in_another_split(tmp_path: Path) -> None:
    path = tmp_path / "test.conll"
    path.write_text("Anna\tB-PER\n\nAcme\tB-ORG\n", encoding="utf-8")
    with refused("'B-ORG' does not occur in training", path, 3):
        read_tagged(path, allowed=["O", "B-PER", "I-PER"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n\n", "has no sentence"),
        ("ran\tO\n", "has no entity"),
        ("Anna\tB-PER\n\nOslo\tB-LOC\n\nOtto\tB-PER\n", "line 3: the type 'LOC' has this one entity alone"),
    ],
)
def test_tags_that_teach_nothing_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "train.conll"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadFile, match=message):
        tags_of(read_tagged(path))


def test_tags_are_outside_then_begin_and_inside_of_every_type(tmp_path: Path) -> None:
    sentences = read_tagged(write_tagged(tmp_path) / "train.conll")
    assert tags_of(sentences) == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


# Questions


def questions_with(tmp_path: Path, **changed: Any) -> Path:
    content = squad([("q1", "who ran ?", "anna ran", "anna"), ("q2", "where ?", "in oslo", "oslo")])
    content["data"][0]["paragraphs"][1]["qas"][0] |= changed
    path = tmp_path / "train.json"
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path


def line_of(path: Path, text: str) -> int:
    return next(i for i, line in enumerate(path.read_text().splitlines(), start=1) if text in line)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"answers": [{"text": "oslo", "answer_start": 0}]},
            "has the answer 'oslo' at 0, where its context has 'in o'; it occurs at 3",
        ),
        (
            {"answers": [{"text": "paris", "answer_start": 3}]},
            "has the answer 'paris' at 3.*does not occur in the context at all",
        ),
        ({"answers": [{"text": "oslo", "answer_start": 900}]}, "has the answer 'oslo' at 900"),
        ({"answers": [{"text": "oslo", "answer_start": -4}]}, "has the answer 'oslo' at -4"),
        ({"answers": [{"text": "oslo"}]}, "has an answer without 'text' and 'answer_start'"),
        ({"answers": []}, "has no answer and is not marked is_impossible"),
        ({"question": " "}, "is blank"),
    ],
)
def test_a_question_whose_answer_does_not_fit_is_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    path = questions_with(tmp_path, **changed)
    with refused(f"the question 'q2' {message}", path, line_of(path, '"q2"')):
        read_questions(path)


def test_a_repeated_question_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="the question 'q1' comes twice"):
        read_questions(questions_with(tmp_path, id="q1"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "line 1: has no list 'data'"),
        ('{"data": []}', "has no question"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', "line 1: not in SQuAD's layout"),
        ('{\n"data": [', "line 2: is no JSON"),
    ],
)
def test_a_file_in_another_layout_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "train.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadFile, match=re.escape(str(path)) + ".*" + message):
        read_questions(path)


def test_unanswerable_questions_have_no_answers_and_answers_slice_back(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    asked = [("a", "who ?", "it was anna .", "anna"), ("b", "where ?", "it was anna .", None)]
    path.write_text(json.dumps(squad(asked)), encoding="utf-8")
    assert [q.answer_texts() for q in read_questions(path)] == [["anna"], []]


# Pairs


def test_pairs_are_read_from_tables_and_lines(tmp_path: Path) -> None:
    table = tmp_path / "train.tsv"
    table.write_text("score\tsentence1\tsentence2\n4.5\ta\tb\n", encoding="utf-8")
    lines = write_lines(tmp_path / "train.jsonl", [{"anchor": "a", "positive": "b", "negative": ["c"]}])
    assert read_pairs(table) == [ScoredPair("a", "b", 4.5, table, 2)]
    assert read_pairs(lines) == [Positive("a", "b", ("c",), lines, 1)]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("a\tb\n", 1, "the heading is a, b; expected sentence1, sentence2 and score"),
        ("sentence1\tsentence2\tscore\na\tb\n", 2, "has 2 columns, the heading 3"),
        ("sentence1\tsentence2\tscore\na\tb\thigh\n", 2, "the score 'high' is no number"),
        ("sentence1\tsentence2\tscore\na\tb\tnan\n", 2, "the score 'nan' is no number"),
        ("sentence1\tsentence2\tscore\n \tb\t1\n", 2, "'sentence1' is blank"),
    ],
)
def test_a_malformed_table_of_pairs_is_refused(tmp_path: Path, content: str, line: int, message: str) -> None:
    path = tmp_path / "train.tsv"
    path.write_text(content, encoding="utf-8")
    with refused(message, path, line):
        read_pairs(path)


def test_kinds_of_pairs_are_not_mixed(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"anchor": "a", "positive": "b"},
        {"sentence1": "a", "sentence2": "b", "score": 1},
    ]
    path = write_lines(tmp_path / "train.jsonl", rows)
    with refused("is of another kind", path, 2):
        read_pairs(path)


def test_scores_are_scaled_by_those_of_training(tmp_path: Path) -> None:
    def pair(score: float) -> ScoredPair:
        return ScoredPair("a", "b", score, tmp_path, 1)

    assert scaled([pair(2), pair(9), pair(-1)], like=[pair(1), pair(5)]) == [0.25, 1.0, 0.0]
    with pytest.raises(BadFile, match="every score is 3"):
        scaled([pair(3)], like=[pair(3), pair(3)])


# Splits


def request(*paths: Path, **options: Any) -> TrainingRequest:
    return TrainingRequest(task="sequence", paths=paths, output=Path("unused"), **options)


def test_splits_are_found_by_name_also_gzipped(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "dev.jsonl").write_text("")
    (tmp_path / "oos_test.jsonl").write_text("")
    splits = find_splits(request(tmp_path), suffixes=(".jsonl",))
    assert splits.train == [tmp_path / "train.jsonl.gz"]
    assert splits.validation == tmp_path / "dev.jsonl"
    assert splits.test is None


def test_several_files_for_a_split_must_be_told_apart(tmp_path: Path) -> None:
    for name in ("train.json", "dev-v1.json", "dev-v2.json"):
        (tmp_path / name).write_text("")
    with pytest.raises(BadFile, match=r"several files for validation: dev-v1\.json, dev-v2\.json"):
        find_splits(request(tmp_path), suffixes=(".json",))


def test_missing_data_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--data is missing"):
        find_splits(request(), suffixes=(".jsonl",))
    with pytest.raises(BadFile, match=r"nothing does not exist"):
        find_splits(request(tmp_path / "nothing"), suffixes=(".jsonl",))
    with pytest.raises(BadFile, match=r"has no file to train on; expected train\.jsonl"):
        find_splits(request(tmp_path), suffixes=(".jsonl",))
    write_lines(tmp_path / "train.jsonl", [{}])
    with pytest.raises(BadFile, match=r"gone\.jsonl does not exist"):
        find_splits(request(tmp_path, test=tmp_path / "gone.jsonl"), suffixes=(".jsonl",))
