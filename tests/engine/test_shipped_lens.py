"""The shipped lens knows what it was taught: what a text is about, and what follows it."""

import json
from pathlib import Path

import pytest

from app.engine.inspected import InspectedModels
from app.engine.inspection import MASK, InspectedModel
from app.settings import Settings

DEMO = Path(__file__).parents[2] / "indexer" / "demo"
N_TEXTS = 60


@pytest.fixture(scope="module")
def lens() -> InspectedModel:
    return InspectedModels(Settings()).of_role("lens")


@pytest.fixture(scope="module")
def texts() -> list[list[str]]:
    """The first two sentences of paragraphs, in the order of their articles."""
    (file,) = DEMO.glob("*.jsonl")
    documents = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    firsts = [each["text"].split(". ")[:2] for each in documents]
    pairs = [[f"{sentence}." for sentence in two] for two in firsts if len(two) == 2]
    short = [two for two in pairs if all(30 < len(sentence) < 200 for sentence in two)]
    return short[:: len(short) // N_TEXTS]


def test_the_next_sentence_is_told_from_one_of_another_article(
    lens: InspectedModel, texts: list[list[str]]
) -> None:
    others = [*texts[len(texts) // 2 :], *texts[: len(texts) // 2]]  # neighbours may be of one article

    def margin(first: str, second: str) -> float:
        is_next, is_random = lens.follows(lens.see(first, second, truncate=True).pieces)
        return is_next - is_random

    n_right = sum(
        margin(first, second) > margin(first, other)
        for (first, second), (_, other) in zip(texts, others, strict=True)
    )
    assert n_right >= 0.8 * len(texts)


def test_a_hidden_word_is_among_the_best_of_the_vocabulary(
    lens: InspectedModel, texts: list[list[str]]
) -> None:
    """The longest word that is one piece: 300 of 30,522 are a hundredth, and a third are found there."""
    is_found = []
    for text, _ in texts:
        words = [word for word in text.split() if word.isalpha() and len(lens.tokenizer.pieces(word)) == 3]
        word = max(words, key=len)
        ((_, fillings),) = lens.fill_masks(text.replace(word, MASK, 1), top_k=300)
        is_found.append(lens.tokenizer.pieces(word).ids[1] in {each.token_id for each in fillings})
    assert sum(is_found) >= 0.2 * len(is_found)
