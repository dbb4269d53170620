from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from indexer.training.batching import LENGTHS, TokenBatches, rounded

LENGTHS_OF_ROWS = st.lists(st.integers(1, 600), min_size=1, max_size=200)


@given(LENGTHS_OF_ROWS, st.integers(16, 2048), st.integers(0, 5))
def test_every_row_comes_once_in_every_epoch(lengths: list[int], batch_tokens: int, epoch: int) -> None:
    batches = TokenBatches(lengths, batch_tokens=batch_tokens, seed=1)
    batches.set_epoch(epoch)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))


@given(LENGTHS_OF_ROWS, st.integers(16, 2048))
def test_a_batch_of_several_rows_keeps_within_the_tokens(lengths: list[int], batch_tokens: int) -> None:
    for batch in TokenBatches(lengths, batch_tokens=batch_tokens, seed=1):
        longest = rounded(max(lengths[row] for row in batch))
        assert len(batch) == 1 or len(batch) * longest <= batch_tokens


@given(LENGTHS_OF_ROWS, st.integers(16, 2048))
def test_all_epochs_have_as_many_batches_as_announced(lengths: list[int], batch_tokens: int) -> None:
    batches = TokenBatches(lengths, batch_tokens=batch_tokens, seed=1)
    for epoch in range(3):
        batches.set_epoch(epoch)
        assert len(list(batches)) == len(batches)


@given(LENGTHS_OF_ROWS)
def test_shapes_are_few_whatever_the_lengths(lengths: list[int]) -> None:
    """A full batch has one size per rounded length; only the last one may have another."""
    shapes = Counter(
        (len(batch), rounded(max(lengths[row] for row in batch)))
        for batch in TokenBatches(lengths, batch_tokens=1024, seed=2)
    )
    assert len(shapes) <= len({rounded(length) for length in lengths}) + 1


def test_epochs_differ_and_are_repeatable() -> None:
    lengths = [10 + i % 50 for i in range(300)]

    def epoch(number: int, seed: int = 1) -> list[list[int]]:
        batches = TokenBatches(lengths, batch_tokens=256, seed=seed)
        batches.set_epoch(number)
        return list(batches)

    assert epoch(0) == epoch(0)
    assert epoch(0) != epoch(1)
    assert epoch(0) != epoch(0, seed=2)


def test_without_a_seed_rows_come_in_ascending_length() -> None:
    lengths = [40, 5, 100, 20, 7]
    rows = [row for batch in TokenBatches(lengths, batch_tokens=64, seed=None) for row in batch]
    assert rows == [1, 4, 3, 0, 2]


@given(st.integers(1, 5000))
def test_rounding_is_up_and_wastes_less_than_half_beyond_the_least_length(length: int) -> None:
    assert rounded(length) >= length
    assert rounded(length) < 2 * length or length < LENGTHS[0]
