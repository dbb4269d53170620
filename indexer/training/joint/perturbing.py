"""Questions that look answerable and are not, made by small changes to answerable ones.

The kinds are those that Rajpurkar et al. 2018 (table 2) found in questions written to be unanswerable:
another name or number, an antonym, a negation. A changed question goes with the unchanged paragraph. Or the
question stays, and the sentence with its answer is taken out of the paragraph.
"""

import random
import re

from indexer.training.joint.groups import NO_ANSWER, Candidate, Group

CUT_SHARE = 0.25
"""Of the forms without an answer, made by cutting the passage; the others are changed questions."""
NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")
NAME = re.compile(r"\b[A-Z][\w'’-]+(?: (?:of |the |de |and )?[A-Z][\w'’-]+)*")
WORD = re.compile(r"[A-Za-z]+")
NEGATABLE = re.compile(
    r"\b(did|does|do|was|were|is|are|has|have|had|can|could|will|would|should)\b(?! not\b)"
)
NEGATED = {"can": "can't", "will": "won't"}
SENTENCE_END = re.compile(r"[.!?][\"'”’)]*\s+(?=[\"'“‘(]*[A-Z0-9])")
MIN_REST = 0.4
"""Of a context, that must be left when a sentence is taken out."""
OPENING = frozenset(
    {"The", "This", "That", "These", "Those", "In", "It", "He", "She", "They", "On", "At", "As", "By"}
)
"""Words that are no names, though sentences begin with them."""
OPPOSITES = """
first/last before/after largest/smallest largest/least most/least more/fewer north/south
east/west northern/southern eastern/western highest/lowest higher/lower early/late oldest/newest
older/younger increase/decrease increased/decreased begin/end began/ended start/stop
started/stopped old/new long/short longest/shortest above/below male/female men/women won/lost
win/lose with/without positive/negative major/minor good/bad support/oppose supported/opposed
accept/reject accepted/rejected inside/outside rich/poor gained/lost legal/illegal
public/private internal/external same/different allow/prevent allowed/prohibited create/destroy
created/destroyed common/rare best/worst strong/weak stronger/weaker cause/prevent enter/leave
entered/left open/close opened/closed fast/slow better/worse hot/cold birth/death born/buried
ancient/modern maximum/minimum
"""
ANTONYMS = {
    one: other for pair in OPPOSITES.split() for one, other in (pair.split("/"), reversed(pair.split("/")))
}


def without_an_answer(group: Group, choice: random.Random) -> Group | None:
    """A form of it that has no answer: the question changed, or the passage cut. None where none is found."""
    first = group.candidates[0]
    assert first.answer is not None
    start, end = first.answer
    question: str | None = group.question
    text: str | None = first.text
    if choice.random() < CUT_SHARE:
        text = without_answer(first.text, first.answer)
    else:
        question = unanswerable(group.question, first.text, first.text[start:end], choice)
    if question is None or text is None:
        return None
    return Group(question, (Candidate(text, first.title, None, NO_ANSWER),))


def unanswerable(question: str, context: str, answer: str, choice: random.Random) -> str | None:
    """The question changed so that the context does not answer it, as far as a rule can know; or None."""
    ways = [_other_name, _other_number, _antonym, _negation]
    choice.shuffle(ways)
    if ways[0] is _negation:  # the easiest to see, and so the least to learn from
        ways.reverse()
    for way in ways:
        changed = way(question, context, answer, choice)
        if changed is not None and changed != question:
            return changed
    return None


def without_answer(context: str, answer: tuple[int, int]) -> str | None:
    """The context without the sentences that the answer touches; None where the rest holds it again, or is
    little."""
    start, end = answer
    begin = max((m.end() for m in SENTENCE_END.finditer(context, 0, start)), default=0)
    found = SENTENCE_END.search(context, end)
    rest = context[:begin] + (context[found.end() :] if found else "")
    is_enough = len(rest) >= MIN_REST * len(context)
    return rest.strip() if is_enough and context[start:end].casefold() not in rest.casefold() else None


def _other_name(question: str, context: str, answer: str, choice: random.Random) -> str | None:
    return _replaced(question, context, answer, choice, NAME, skip=1)


def _other_number(question: str, context: str, answer: str, choice: random.Random) -> str | None:
    changed = _replaced(question, context, answer, choice, NUMBER, skip=0)
    found = NUMBER.search(question)
    if changed is None and found and found.group().isdigit():
        other = str(int(found.group()) + choice.choice([-20, -10, -3, -2, 2, 3, 10, 20]))
        if other not in context:
            return question[: found.start()] + other + question[found.end() :]
    return changed


def _replaced(
    question: str, context: str, answer: str, choice: random.Random, pattern: re.Pattern[str], *, skip: int
) -> str | None:
    """With one match of the pattern, beyond the first `skip` characters, replaced by one of the context."""
    places = [m for m in pattern.finditer(question) if m.start() >= skip]
    in_question = question.casefold()
    others = {m.group() for m in pattern.finditer(context)}
    others = {o for o in others if o not in OPENING and not o.startswith("The ")}
    others = {o for o in others if o.casefold() not in in_question}
    others = {o for o in others if o not in answer and answer not in o}
    if not places or not others:
        return None
    place = choice.choice(places)
    n_words = len(place.group().split())
    others = {o for o in others if abs(len(o.split()) - n_words) <= 1} or others
    return question[: place.start()] + choice.choice(sorted(others)) + question[place.end() :]


def _antonym(question: str, _context: str, _answer: str, choice: random.Random) -> str | None:
    places = [m for m in WORD.finditer(question) if m.group() in ANTONYMS]
    if not places:
        return None
    place = choice.choice(places)
    return question[: place.start()] + ANTONYMS[place.group()] + question[place.end() :]


def _negation(question: str, _context: str, _answer: str, _choice: random.Random) -> str | None:
    found = NEGATABLE.search(question)
    if found is None:
        return None
    return (
        question[: found.start()]
        + NEGATED.get(found.group(), f"{found.group()}n't")
        + question[found.end() :]
    )
