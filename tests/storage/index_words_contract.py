"""What every index does with words. A part of `index_contract.IndexContract`."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from app.domain import Collection
from app.storage.index import Index
from app.storage.rows import Rows
from tests.storage.building import encoded, make_collection, write

TEXTS = {
    "cat": "A cat sat on a mat.",
    "dog": "A dog met a dog.",
    "both": "One cat and one dog, and many other animals that are not named.",
    "none": "Nothing of all this.",
}


def found_ids(
    index: Index, rows: Rows, collection: Collection, text: str, *, depth: int = 10
) -> Sequence[str]:
    """Ids of the documents whose passages match, best first."""
    keys = index.matching(collection, text, depth=depth).document_keys.tolist()
    documents = rows.documents_by_key(keys)
    return [documents[key].id for key in keys]


class WordsContract:
    @pytest.fixture
    def zoo(self, rows: Rows) -> Collection:
        """A collection of `TEXTS`, one passage each."""
        zoo = make_collection(rows, "zoo")
        write(rows, zoo, *(encoded(id_, text, n_passages=1) for id_, text in TEXTS.items()))
        return zoo

    @pytest.fixture(params=["applied", "maintained"])
    def words(self, index: Index, zoo: Collection, request: pytest.FixtureRequest) -> Index:
        """An index that has followed the zoo."""
        index.apply(zoo)
        if request.param == "maintained":
            index.maintain(zoo)
        return index

    def test_passages_with_the_words_are_found_best_first(
        self, words: Index, rows: Rows, zoo: Collection
    ) -> None:
        assert found_ids(words, rows, zoo, "dogs") == ["dog", "both"]
        assert found_ids(words, rows, zoo, "the cat?") == ["cat", "both"]
        scores = words.matching(zoo, "cat dog", depth=10).scores
        assert len(scores) == 3
        assert (np.diff(scores) <= 0).all()

    def test_depth_cuts_the_ranking_of_words(self, words: Index, rows: Rows, zoo: Collection) -> None:
        whole = found_ids(words, rows, zoo, "cat dog")
        assert [found_ids(words, rows, zoo, "cat dog", depth=depth) for depth in range(4)] == [
            whole[:depth] for depth in range(4)
        ]

    @pytest.mark.parametrize("text", ["", " ", "?!", "🎉", "*", '"', "zebra", "\x00"])
    def test_text_without_a_known_word_matches_nothing(
        self, words: Index, zoo: Collection, text: str
    ) -> None:
        found = words.matching(zoo, text, depth=10)
        assert (found.keys.size, found.document_keys.size, found.scores.size) == (0, 0, 0)

    def test_the_words_of_a_new_document_are_found_by_every_handle(
        self, words: Index, open_index: Callable[[], Index], rows: Rows, zoo: Collection
    ) -> None:
        other = open_index()
        assert found_ids(other, rows, zoo, "zebra") == []
        write(rows, zoo, encoded("new", "A zebra.", n_passages=1))
        words.apply(zoo)
        assert [found_ids(handle, rows, zoo, "zebra") for handle in (words, other, open_index())] == [
            ["new"]
        ] * 3

    def test_the_words_of_a_deleted_document_are_not_found(
        self, words: Index, open_index: Callable[[], Index], rows: Rows, zoo: Collection
    ) -> None:
        write(rows, zoo, "dog")
        words.apply(zoo)
        for handle in (words, open_index()):
            assert found_ids(handle, rows, zoo, "dog") == ["both"]
        words.maintain(zoo)
        assert found_ids(words, rows, zoo, "dog") == ["both"]

    def test_an_updated_document_is_found_by_its_new_words_only(
        self, words: Index, rows: Rows, zoo: Collection
    ) -> None:
        write(rows, zoo, encoded("dog", "Now a zebra.", n_passages=1))
        words.apply(zoo)
        assert found_ids(words, rows, zoo, "dog") == ["both"]
        assert found_ids(words, rows, zoo, "zebra") == ["dog"]

    def test_equal_passages_are_ranked_by_key(self, index: Index, rows: Rows) -> None:
        twins = make_collection(rows, "twins")
        ids = [f"t{i}" for i in range(9)]
        for part in (ids[:3], ids[3:6], ids[6:]):
            write(rows, twins, *(encoded(id_, "the same words", n_passages=1) for id_ in part))
            index.apply(twins)
            index.maintain(twins)
        assert found_ids(index, rows, twins, "words", depth=7) == ids[:7]

    def test_collections_do_not_see_each_others_words(
        self, words: Index, rows: Rows, zoo: Collection
    ) -> None:
        films = make_collection(rows, "films")
        write(rows, films, encoded("film", "A film with a cat.", n_passages=1))
        words.apply(films)
        assert found_ids(words, rows, films, "cat") == ["film"]
        assert found_ids(words, rows, zoo, "film") == []

    def test_a_dropped_collection_has_no_words(self, words: Index, rows: Rows, zoo: Collection) -> None:
        rows.drop_collection(zoo.name)
        words.drop(zoo.key)
        assert words.matching(zoo, "cat", depth=10).keys.size == 0
