"""What is held out of the joint model's training, and what it becomes for calibration."""

import random
from pathlib import Path

import pytest

from app.errors import InvalidInput
from indexer.training.joint.groups import NO_ANSWER, Candidate, Group, read_groups
from indexer.training.joint.held_out import calibrating, has_answer, held_out_titles, write_calibration


def asked(title: str, place: int) -> Group:
    year = str(1400 + place)
    text = f"The bridge of {title} {place} was built. It opened in {year}. It is still in use today."
    start = text.index(year)
    return Group(
        f"When was the bridge of {title} opened?", (Candidate(text, title, 1.0, (start, start + 4)),)
    )


GROUPS = [asked(title, place) for title in ("Bern", "Basel", "Chur", "Genf") for place in range(30)]


def test_at_most_half_of_the_titles_are_held_out() -> None:
    assert len(held_out_titles(GROUPS, random.Random(1))) == 2
    with pytest.raises(InvalidInput, match="at least two titles"):
        held_out_titles([group for group in GROUPS if group.candidates[0].title == "Bern"], random.Random(1))


def test_questions_are_asked_where_they_are_answered_and_where_they_are_not() -> None:
    made = calibrating(GROUPS, random.Random(1))
    answered = [group for group in made if has_answer(group)]
    assert all(group in GROUPS for group in answered)
    assert 0.4 < len(answered) / len(made) < 0.7
    texts = {group.candidates[0].text: group.question for group in GROUPS}
    others = [group for group in made if not has_answer(group)]
    assert {group.candidates[0].answer for group in others} == {NO_ANSWER}
    elsewhere = [group for group in others if texts.get(group.candidates[0].text) == group.question]
    changed = [group for group in others if group.question not in texts.values()]
    cut = [group for group in others if group.candidates[0].text not in texts]
    assert len(elsewhere) + len(changed) + len(cut) == len(others)
    assert all((elsewhere, changed, cut))


def test_what_calibrates_is_written_as_groups(tmp_path: Path) -> None:
    file = write_calibration(GROUPS, tmp_path / "out", random.Random(1))
    assert list(read_groups(file)) == calibrating(GROUPS, random.Random(1))
