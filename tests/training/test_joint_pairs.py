"""Pairs of the joint model: ids, targets, windows, batches and losses."""

import math
import random
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from app.engine.model_files import find_bi_encoder
from app.engine.tokenizer import Tokenizer
from indexer.training.joint.batches import GroupBatches
from indexer.training.joint.groups import NO_ANSWER, Candidate, Group
from indexer.training.joint.losses import ranking_loss, span_loss
from indexer.training.joint.pairs import IGNORED, PairEncoder, as_arrays

TOKENIZER = Tokenizer(find_bi_encoder("sentence-transformers/all-MiniLM-L6-v2").tokenizer_definition())
CONTEXT = "The old bridge of Bern was built in 1461 by Daniel Heintz of Basel."


def encode(group: Group, *, max_tokens: int = 64, seed: int = 1) -> dict[str, torch.Tensor]:
    encoder = PairEncoder(TOKENIZER, max_tokens=max_tokens, choice=random.Random(seed))
    arrays = as_arrays([encoder.encode(group)], pad_id=0)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def answered(question: str, text: str, answer: str) -> Group:
    start = text.index(answer)
    return Group(question, (Candidate(text, None, 1.0, (start, start + len(answer))),))


def words(ids: torch.Tensor) -> str:
    tokenizer = TOKENIZER._tokenizer
    return str(tokenizer.decode(ids.tolist(), skip_special_tokens=False))


def test_the_targets_are_the_tokens_of_the_answer() -> None:
    batch = encode(answered("Who built it?", CONTEXT, "Daniel Heintz"))
    start, end = int(batch["start"][0]), int(batch["end"][0])
    assert words(batch["input_ids"][0, start : end + 1]) == "daniel heintz"


def test_question_and_passage_are_two_segments_between_special_tokens() -> None:
    batch = encode(answered("Who built it?", CONTEXT, "Bern"))
    ids, segments = batch["input_ids"][0], batch["token_type_ids"][0]
    n = int(batch["attention_mask"].sum())
    assert words(ids[segments == 0][: 3 + 3]) == "[CLS] who built it? [SEP]"
    assert words(ids[:n][segments[:n] == 1]).endswith("of basel. [SEP]")
    assert not segments[n:].any()


@given(seed=st.integers(0, 1000), answer=st.sampled_from(["The old", "1461", "Basel"]))
def test_a_window_of_a_long_passage_holds_the_answer(seed: int, answer: str) -> None:
    filler = " ".join(["water under it"] * 20)
    batch = encode(answered("Who?", f"{filler} {CONTEXT} {filler}", answer), max_tokens=32, seed=seed)
    start, end = int(batch["start"][0]), int(batch["end"][0])
    assert words(batch["input_ids"][0, start : end + 1]) == answer.lower()
    assert 32 - 32 // 7 <= int(batch["attention_mask"].sum()) <= 32


def test_half_of_the_passages_that_stand_alone_are_read_in_a_short_window() -> None:
    alone = answered("Who?", " ".join([CONTEXT] * 20), "Basel")
    rivals = Group("Who?", (*alone.candidates, Candidate(alone.candidates[0].text, None, 0.0, NO_ANSWER)))
    lengths = [int(encode(alone, max_tokens=224, seed=s)["attention_mask"].sum()) for s in range(40)]
    n_short = sum(length <= 128 for length in lengths)
    assert all(110 <= length <= 128 or 192 <= length <= 224 for length in lengths)
    assert 10 < n_short < 30
    assert all(
        int(mask.sum()) >= 192
        for s in range(9)
        for mask in encode(rivals, max_tokens=224, seed=s)["attention_mask"]
    )


def test_the_length_of_a_cut_passage_does_not_tell_that_it_answers_nothing() -> None:
    """Passages that do not answer are cut to about the length of the one that does."""
    answer, long = answered("Who?", CONTEXT, "Basel").candidates[0], " ".join([CONTEXT] * 20)
    group = Group("Who?", (answer, *[Candidate(long, None, 0.0, NO_ANSWER)] * 40))
    lengths = [int(mask.sum()) for mask in encode(group, max_tokens=224)["attention_mask"][1:]]
    assert len(set(lengths)) > 8
    assert max(lengths) <= 96


def test_an_answer_longer_than_the_window_is_ignored() -> None:
    answer = " ".join(["water"] * 60)
    batch = encode(answered("Who?", f"It was {answer} again.", answer), max_tokens=32)
    assert (int(batch["start"][0]), int(batch["end"][0])) == (IGNORED, IGNORED)


def test_a_title_is_read_and_bears_no_answer() -> None:
    group = Group("Who?", (Candidate("Heintz did.", "Bern", 1.0, (0, 6)),))
    seen = set()
    for seed in range(20):
        batch = encode(group, seed=seed)
        has_title = "bern" in words(batch["input_ids"][0])
        seen.add(has_title)
        assert words(batch["input_ids"][0][batch["allowed"][0]]).startswith("[CLS] heintz did")
    assert seen == {True, False}


def test_what_is_not_known_is_ignored() -> None:
    candidates = (Candidate(CONTEXT, None, None, None), Candidate(CONTEXT, None, 0.0, NO_ANSWER))
    batch = encode(Group("Who?", candidates))
    assert batch["start"].tolist() == [IGNORED, 0]
    assert math.isnan(float(batch["relevance"][0]))


@given(
    groups=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 4)), min_size=1, max_size=60),
    limit=st.integers(32, 600),
)
def test_batches_hold_every_group_once_within_the_limit(groups: list[tuple[int, int]], limit: int) -> None:
    lengths, sizes = [32 * n for n, _ in groups], [size for _, size in groups]
    batches = list(GroupBatches(lengths, sizes, max_batch_tokens=limit, seed=1))
    assert Counter(place for batch in batches for place in batch) == Counter(range(len(groups)))
    for batch in batches:
        n_tokens = sum(sizes[p] for p in batch) * max(lengths[p] for p in batch)
        assert n_tokens <= limit or len(batch) == 1


def test_epochs_differ_and_repeat_themselves() -> None:
    batches = GroupBatches([32] * 40, [1] * 40, max_batch_tokens=64, seed=1)
    first = list(batches)
    batches.set_epoch(1)
    assert list(batches) != first
    batches.set_epoch(0)
    assert list(batches) == first


def test_the_span_loss_is_cross_entropy_over_the_allowed_tokens() -> None:
    logits = torch.tensor([[1.0, 9.0, 2.0, 3.0]])
    allowed = torch.tensor([[True, False, True, True]])
    loss = span_loss(
        logits, logits, start=torch.tensor([2]), end=torch.tensor([3]), allowed=allowed, weight=torch.ones(1)
    )
    shares = torch.softmax(torch.tensor([1.0, 2.0, 3.0]), 0)
    assert float(loss) == pytest.approx(float(-(shares[1].log() + shares[2].log()) / 2), rel=1e-5)


def test_the_ranking_loss_compares_only_within_a_group() -> None:
    logits = torch.tensor([2.0, 0.0, 5.0, -1.0])
    relevance = torch.tensor([1.0, 0.0, 1.0, 0.0])
    loss = ranking_loss(logits, relevance=relevance, group=torch.tensor([0, 0, 1, 1]))
    listwise = (math.log1p(math.exp(-2)) + math.log1p(math.exp(-6))) / 2
    pairs = [math.log1p(math.exp(-2)), math.log(2), math.log1p(math.exp(-5)), math.log1p(math.exp(-1))]
    assert float(loss) == pytest.approx(listwise + sum(pairs) / 4, rel=1e-5)


@pytest.mark.parametrize("relevance", [[1.0], [math.nan], [math.nan, math.nan]])
def test_without_rivals_there_is_nothing_to_rank(relevance: list[float]) -> None:
    logits = torch.ones(len(relevance), requires_grad=True)
    loss = ranking_loss(
        logits, relevance=torch.tensor(relevance), group=torch.zeros(len(relevance), dtype=torch.long)
    )
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == 0.0
