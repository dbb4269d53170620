"""Questions that take no part in training: some measure it, all together calibrate what was trained."""

import random
from collections.abc import Sequence
from pathlib import Path

from app.errors import InvalidInput
from indexer.training.joint.groups import NO_ANSWER, Candidate, Group, as_json
from indexer.training.joint.perturbing import without_an_answer

CALIBRATION = "calibration.jsonl"
"""In the output of a training, for `bifocal calibrate --answers`."""
N_HELD_OUT = 12
"""Titles."""
N_CALIBRATING = 1_500
ANSWERED_SHARE = 0.55
OTHER_PASSAGE_SHARE = 0.4
"""Of the questions without an answer: asked of another passage of the same title, as a search would find."""


def held_out_titles(groups: Sequence[Group], choice: random.Random) -> set[str]:
    """
    Raises:
        InvalidInput: fewer than two titles.
    """
    titles = sorted({title for group in groups if (title := title_of(group)) and has_answer(group)})
    if len(titles) < 2:
        raise InvalidInput(
            "questions of at least two titles are needed, so that one can be held out to measure on"
        )
    return set(choice.sample(titles, min(N_HELD_OUT, len(titles) // 2)))


def write_calibration(held_out: Sequence[Group], folder: Path, choice: random.Random) -> Path:
    """Questions with and without an answer in the passage that they are asked of."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / CALIBRATION
    lines = [as_json(group) + "\n" for group in calibrating(held_out, choice)]
    file.write_text("".join(lines), encoding="utf-8")
    return file


def calibrating(held_out: Sequence[Group], choice: random.Random) -> list[Group]:
    asked = [group for group in held_out if has_answer(group)]
    passages: dict[str | None, list[Candidate]] = {}
    for group in asked:
        passages.setdefault(title_of(group), []).append(group.candidates[0])
    made: list[Group | None] = []
    for group in choice.sample(asked, min(N_CALIBRATING, len(asked))):
        if choice.random() < ANSWERED_SHARE:
            made.append(Group(group.question, group.candidates[:1]))
        elif choice.random() < OTHER_PASSAGE_SHARE:
            made.append(_asked_elsewhere(group, passages[title_of(group)], choice))
        else:
            made.append(without_an_answer(group, choice))
    return [group for group in made if group is not None]


def title_of(group: Group) -> str | None:
    return group.candidates[0].title


def has_answer(group: Group) -> bool:
    return group.candidates[0].answer not in (None, NO_ANSWER)


def _asked_elsewhere(group: Group, passages: Sequence[Candidate], choice: random.Random) -> Group | None:
    first = group.candidates[0]
    assert first.answer is not None
    answer = first.text[slice(*first.answer)].casefold()
    others = [each for each in passages if answer not in each.text.casefold()]
    if not others:
        return None
    other = choice.choice(others)
    return Group(group.question, (Candidate(other.text, other.title, None, NO_ANSWER),))
