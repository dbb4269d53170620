import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.storage.embedded.masks import DocumentMask
from app.storage.embedded.selection import Selection

flag_lists = st.lists(st.booleans(), max_size=40)


@given(flag_lists)
def test_selection_remembers_its_flags(flags: list[bool]) -> None:
    selection = Selection.of_flags(np.array(flags, np.bool_))
    assert selection.flags().tolist() == flags
    assert selection.positions().tolist() == [i for i, flag in enumerate(flags) if flag]
    assert (selection.n, selection.n_selected) == (len(flags), sum(flags))
    assert selection.contains(np.arange(len(flags))).tolist() == flags


@given(flag_lists.filter(bool), st.data())
def test_taking_positions_away_leaves_the_others(flags: list[bool], data: st.DataObject) -> None:
    taken = data.draw(st.lists(st.integers(0, len(flags) - 1)))
    before = Selection.of_flags(np.array(flags, np.bool_))
    after = before.without(np.array(taken, np.int64))
    expected = [flag and i not in taken for i, flag in enumerate(flags)]
    assert after.flags().tolist() == expected
    assert after.n_selected == sum(expected)
    assert before.flags().tolist() == flags


@given(flag_lists, st.integers(0, 20))
def test_new_positions_are_selected(flags: list[bool], n_new: int) -> None:
    extended = Selection.of_flags(np.array(flags, np.bool_)).extended(len(flags) + n_new)
    assert extended.flags().tolist() == flags + n_new * [True]


def test_selecting_all_needs_no_bits() -> None:
    assert Selection.of_flags(np.ones(1000, np.bool_)).bits is None


@given(st.sets(st.integers(1, 60)), st.lists(st.integers(1, 80)))
def test_document_mask_lets_through_its_documents_only(allowed: set[int], asked: list[int]) -> None:
    flags = DocumentMask.of(allowed).flags(np.array(asked, np.int64))
    assert flags.tolist() == [key in allowed for key in asked]
