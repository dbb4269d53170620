"""Judging answers, entities and labels."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadFile
from indexer.evaluation.statistics import Estimate
from indexer.evaluation.task_examples import (
    ContextQuestion,
    LabelledText,
    TaggedSentence,
    iob2,
    read_labelled,
    read_squad,
    read_tagged,
)
from indexer.evaluation.task_judging import (
    GivenAnswer,
    GivenEntity,
    GivenLabel,
    judge_answers,
    judge_entities,
    judge_labels,
    tags_of,
)

SQUAD = {
    "data": [
        {
            "title": "Poland",
            "paragraphs": [
                {
                    "context": "Warsaw is the capital.",
                    "qas": [
                        {
                            "id": "1",
                            "question": "Which city?",
                            "answers": [{"text": "Warsaw"}, {"text": "W."}],
                        },
                        {"id": "2", "question": "Who?", "answers": [], "is_impossible": True},
                    ],
                }
            ],
        }
    ]
}
ANSWERED = ContextQuestion("1", "Which city?", "Warsaw is the capital.", "Poland", ("Warsaw", "W."))
UNANSWERED = ContextQuestion("2", "Who?", "Warsaw is the capital.", "Poland", ())


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_questions_are_read_from_squads_json(tmp_path: Path) -> None:
    assert read_squad(written(tmp_path / "dev.json", SQUAD)) == [ANSWERED, UNANSWERED]


@pytest.mark.parametrize("content", ["{", "[]", {"data": []}, {"data": [{"paragraphs": [{"qas": [{}]}]}]}])
def test_what_is_not_of_squads_form_is_refused(tmp_path: Path, content: object) -> None:
    with pytest.raises(BadFile, match=r"dev\.json"):
        read_squad(written(tmp_path / "dev.json", content))


def test_sentences_are_read_with_their_tags_as_iob2(tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.conll",
        "-DOCSTART- -X- O O\n\nMarie NNP B I-PER\nCurie NNP I I-PER\n\n\nWarsaw\tB-LOC\n",
    )
    assert read_tagged(path) == [
        TaggedSentence(("Marie", "Curie"), ("B-PER", "I-PER")),
        TaggedSentence(("Warsaw",), ("B-LOC",)),
    ]


@pytest.mark.parametrize("line", ["Marie", "Marie PER", "Marie B-"])
def test_a_token_without_a_tag_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadFile, match="line 2: has no tag"):
        read_tagged(written(tmp_path / "x.conll", f"a O\n{line}\n"))


def test_labelled_texts_are_lines_of_json(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", '{"text": "good", "label": "1"}\n')
    assert read_labelled(path) == [LabelledText("good", "1")]
    with pytest.raises(BadFile, match="line 1: 'label' is missing"):
        read_labelled(written(path, '{"text": "good"}\n'))


tags = st.lists(st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]), max_size=12)


@given(tags)
def test_what_is_inside_an_entity_in_iob2_follows_its_beginning(tags: list[str]) -> None:
    changed = iob2(tags)
    assert [tag[1:] for tag in changed] == [tag[1:] for tag in tags]
    for before, tag in zip(["O", *changed], changed, strict=False):
        assert not tag.startswith("I-") or before[2:] == tag[2:]
    assert iob2(changed) == changed


@given(tags)
def test_entities_at_the_borders_of_tokens_give_their_tags_back(tags: list[str]) -> None:
    wanted = iob2(tags)
    tokens = [f"w{i}" for i in range(len(wanted))]
    text = " ".join(tokens)
    found: list[GivenEntity] = []
    for i, tag in enumerate(wanted):
        start = text.index(tokens[i]) if i < 10 else text.index(f"w{i}")
        end = start + len(tokens[i])
        if tag.startswith("B-"):
            found.append(GivenEntity(start, end, tag[2:]))
        elif tag.startswith("I-"):
            found[-1] = GivenEntity(found[-1].start, end, tag[2:])
    assert tags_of(tokens, found) == wanted


def test_where_all_questions_have_answers_the_model_always_answers() -> None:
    judged = judge_answers([ANSWERED], lambda _: GivenAnswer("the Warsaw", 0.1))
    assert judged.metrics["exact match"] == Estimate(1.0, None, None)
    assert judged.metrics["calibration error"].mean == pytest.approx(0.9)
    assert "answerable AUROC" not in judged.metrics


def test_where_some_have_none_a_doubtful_answer_counts_as_none() -> None:
    """Both are right in the end: the first is answered, of the second the model abstains."""
    given_answers = {"1": GivenAnswer("Warsaw", 0.9), "2": GivenAnswer("the capital", 0.3)}
    judged = judge_answers([ANSWERED, UNANSWERED], lambda question: given_answers[question.id])
    assert judged.metrics["exact match"].mean == judged.metrics["F1"].mean == 1.0
    assert judged.metrics["answerable AUROC"].mean == 1.0
    assert judged.metrics["best span F1"].mean == 1.0
    assert [row[2] for row in judged.rows] == ["Warsaw", ""]


def test_an_answer_where_there_is_none_is_wrong() -> None:
    judged = judge_answers([ANSWERED, UNANSWERED], lambda _: GivenAnswer("Warsaw", 0.9))
    assert judged.metrics["F1"].mean == 0.5
    assert judged.metrics["answerable AUROC"].mean == 0.5


def test_entities_are_judged_by_span_and_type() -> None:
    sentences = [
        TaggedSentence(("Marie", "Curie"), ("B-PER", "I-PER")),
        TaggedSentence(("Warsaw",), ("B-LOC",)),
    ]
    found = {"Marie Curie": [GivenEntity(0, 11, "PER")], "Warsaw": [GivenEntity(0, 6, "MISC")]}
    judged = judge_entities(sentences, lambda text: found[text])
    assert judged.metrics["span F1"].mean == 0.5
    assert judged.metrics["span F1 of PER"].mean == 1.0
    assert judged.metrics["span F1 of LOC"].mean == 0.0
    assert judged.notes == ("the model finds types that the data lack: MISC",)


def test_labels_are_judged_by_accuracy_macro_f1_and_calibration() -> None:
    texts = [LabelledText("a", "x"), LabelledText("b", "x"), LabelledText("c", "y")]
    judged = judge_labels(texts, lambda _: GivenLabel("x", 2 / 3))
    assert judged.metrics["accuracy"].mean == pytest.approx(2 / 3)
    assert judged.metrics["macro F1"].mean == pytest.approx((0.8 + 0) / 2)
    assert judged.metrics["calibration error"].mean == pytest.approx(0, abs=1e-9)


def test_each_example_is_counted_once() -> None:
    n_done: list[int] = []
    judge_labels(
        [LabelledText("a", "x")] * 3, lambda _: GivenLabel("x", 1.0), advance=lambda: n_done.append(1)
    )
    assert len(n_done) == 3
