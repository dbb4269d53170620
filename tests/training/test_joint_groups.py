"""Reading the training data of the joint model, and the questions made unanswerable."""

import gzip
import json
import random
from pathlib import Path

import pytest

from app.errors import BadFile
from indexer.training.joint.groups import NO_ANSWER, Candidate, Group, as_json, read_groups
from indexer.training.joint.perturbing import unanswerable, without_answer

CONTEXT = "In 1863 the Treaty of Bern was signed in Basel by 12 cantons."


def squad(**question: object) -> dict[str, object]:
    asked = {"id": "q1", "question": "When was it signed?", "answers": [{"text": "1863", "answer_start": 3}]}
    paragraph = {"context": CONTEXT, "qas": [asked | question]}
    return {"data": [{"title": "Treaty_of_Bern", "paragraphs": [paragraph]}]}


def write(file: Path, content: object) -> Path:
    file.write_text(json.dumps(content))
    return file


def test_a_squad_file_gives_each_question_with_its_paragraph(tmp_path: Path) -> None:
    (group,) = read_groups(write(tmp_path / "train.json", squad()))
    assert group == Group("When was it signed?", (Candidate(CONTEXT, "Treaty of Bern", 1.0, (3, 7)),))


def test_a_packed_squad_file_is_read_too(tmp_path: Path) -> None:
    file = tmp_path / "train.json.gz"
    file.write_bytes(gzip.compress(json.dumps(squad()).encode()))
    assert len(list(read_groups(file))) == 1


def test_an_impossible_question_has_no_answer_and_no_relevance(tmp_path: Path) -> None:
    (group,) = read_groups(write(tmp_path / "train.json", squad(is_impossible=True, answers=[])))
    assert group.candidates[0].answer == NO_ANSWER
    assert group.candidates[0].relevance is None


def test_an_answer_whose_place_is_doubtful_is_left_out(tmp_path: Path) -> None:
    doubtful = [{"text": "1863", "answer_start": 3, "offset_confidence": 0.4}]
    assert list(read_groups(write(tmp_path / "train.json", squad(answers=doubtful)))) == []


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"answers": [{"text": "1864", "answer_start": 3}]}, "q1.*'1864' at 3, where its context has '1863'"),
        ({"answers": [{"text": "1863", "answer_start": 300}]}, "has the answer '1863' at 300"),
        ({"answers": [{"text": "", "answer_start": 3}]}, "has an answer without 'text'"),
        ({"answers": []}, "has no answer and is not marked is_impossible"),
    ],
)
def test_an_answer_that_is_not_in_its_context_is_named(
    tmp_path: Path, question: dict[str, object], message: str
) -> None:
    with pytest.raises(BadFile, match=message):
        list(read_groups(write(tmp_path / "train.json", squad(**question))))


def test_groups_come_back_as_they_were_written(tmp_path: Path) -> None:
    group = Group(
        "When?",
        (
            Candidate(CONTEXT, "Treaty", 1.0, (3, 7)),
            Candidate("Another day.", None, 0.0, NO_ANSWER),
            Candidate("Not judged.", None, None, None),
        ),
    )
    (tmp_path / "groups.jsonl").write_text(as_json(group) + "\n\n", encoding="utf-8")
    assert list(read_groups(tmp_path / "groups.jsonl")) == [group]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "groups.jsonl, line 2"),
        ('{"question": "a"}', "groups.jsonl, line 2.*passages"),
        ('{"question": "a", "passages": [{"title": "b"}]}', "groups.jsonl, line 2.*text"),
        ('{"question": "a", "passages": [{"text": "bcd", "answer": [2, 9]}]}', "not within its text"),
        ('{"question": "a", "passages": [{"text": "bcd", "answer": [2, 2]}]}', "not within its text"),
        ('{"question": "a", "passages": [{"text": "bcd", "answer": 2}]}', "groups.jsonl, line 2"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    good = '{"question": "a", "passages": [{"text": "b"}]}'
    (tmp_path / "groups.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(BadFile, match=message):
        list(read_groups(tmp_path / "groups.jsonl"))


@pytest.mark.parametrize("content", ["[]", "{}", "nonsense"])
def test_json_that_is_not_squad_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "train.json").write_text(content)
    with pytest.raises(BadFile, match=r"is no JSON|has no list 'data'"):
        list(read_groups(tmp_path / "train.json"))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who signed the Treaty of Bern?", {"Who signed the Basel?"}),
        ("Who came first?", {"Who came last?"}),
        ("Who will come?", {"Who won't come?"}),
        ("Where did they sign?", {"Where didn't they sign?"}),
        ("What was with 1863?", {"What was with 12?", "What was without 1863?", "What wasn't with 1863?"}),
        ("what came of it", {None}),
    ],
)
def test_a_question_becomes_unanswerable_by_one_small_change(
    question: str, expected: set[str | None]
) -> None:
    changed = {unanswerable(question, CONTEXT, "cantons", random.Random(seed)) for seed in range(20)}
    assert changed <= expected
    assert changed


def test_the_answer_itself_never_replaces_a_word_of_the_question() -> None:
    for seed in range(20):
        changed = unanswerable("Which town signed in Geneva?", CONTEXT, "Basel", random.Random(seed))
        assert changed is None or "Basel" not in changed


@pytest.mark.parametrize(
    ("text", "answer", "rest"),
    [
        ("It is old. It was built in 1461. It is long.", "1461", "It is old. It is long."),
        ("Built in 1461. It is old. It is long.", "1461", "It is old. It is long."),
        ("It is old. It is long. Built in 1461.", "1461", "It is old. It is long."),
        ("It is old. Built by J. Heintz. It is long.", "J. Heintz", "It is old. It is long."),
        ("It was built in 1461. So it is of 1461. It is long.", "1461", None),
        ("It was built in 1461 by a man of Basel. It is long.", "1461", None),
        ("It was built in 1461.", "1461", None),
    ],
)
def test_a_passage_loses_its_answer_with_the_sentence_around_it(
    text: str, answer: str, rest: str | None
) -> None:
    start = text.index(answer)
    assert without_answer(text, (start, start + len(answer))) == rest
