"""Which examples allow a training, and what is said of those that do not."""

import pytest

from app.errors import BadExamples, BlankText
from app.labels import Example
from app.services import examples as module
from app.services.examples import ExampleSet


def examples(*pairs: tuple[str, str]) -> list[Example]:
    """Texts with labels separated by blanks."""
    return [Example(text, tuple(labels.split())) for text, labels in pairs]


GOOD = examples(("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))


def test_labels_are_columns_in_order_and_repetitions_count_once() -> None:
    checked = ExampleSet.of([GOOD[2], *GOOD, Example("none", ())], multi_label=False)
    assert checked.labels == ["x", "y"]
    assert [each.text for each in checked.examples] == ["c", "a", "b", "d", "none"]
    assert checked.targets.argmax(axis=1).tolist() == [1, 0, 0, 1, 0]
    assert checked.is_out_of_scope.tolist() == [False] * 4 + [True]


def test_where_several_labels_are_allowed_none_is_no_sign_of_being_out_of_scope() -> None:
    checked = ExampleSet.of(examples(("a", "x y"), ("b", "x"), ("c", "y"), ("d", "")), multi_label=True)
    assert checked.targets.tolist() == [[True, True], [True, False], [False, True], [False, False]]
    assert not checked.is_out_of_scope.any()


@pytest.mark.parametrize(
    ("given", "multi_label", "message"),
    [
        ([], False, "0 different labels"),
        (GOOD[:2], False, "1 different labels; at least two"),
        (GOOD[:3], False, "the label 'y' has 1 example"),
        ([*GOOD, GOOD[0], Example("e", ("z",)), Example("e", ("z",))], False, "'z' has 1 example"),
        ([*GOOD, Example("e", ("x", "y"))], False, "has 2 labels; with multi_label=true"),
        ([*GOOD, Example("e", (" \t",))], False, "one of them visible"),
        ([*GOOD, Example("e", ("x" * 201,))], False, "1 to 200 characters"),
        ([*GOOD, Example("e", ("x", "x"))], True, "same label twice"),
        (examples(("a", ""), ("b", "")), True, "no example has a label"),
        (examples(("a", "x"), ("b", "x"), ("c", "")), True, "all but 1 examples have the label 'x'"),
    ],
)
def test_examples_that_allow_no_training_are_refused(
    given: list[Example], multi_label: bool, message: str
) -> None:
    with pytest.raises(BadExamples, match=message):
        ExampleSet.of(given, multi_label=multi_label)


def test_a_blank_example_is_named() -> None:
    with pytest.raises(BlankText) as caught:
        ExampleSet.of([*GOOD, Example("\u200b \n", ("x",))], multi_label=False)
    assert caught.value.where == ("examples", 4, "text")


def test_more_examples_than_allowed_are_refused_before_they_are_looked_at() -> None:
    with pytest.raises(BadExamples, match=r"20001 examples; at most 20000"):
        ExampleSet.of([GOOD[0]] * (module.MAX_EXAMPLES + 1), multi_label=False)


def test_more_labels_than_allowed_are_refused() -> None:
    many = [Example(f"text {i}", (f"label {i}",)) for i in range(module.MAX_LABELS + 1)]
    with pytest.raises(BadExamples, match=r"1001 labels; at most 1000"):
        ExampleSet.of(many, multi_label=False)
