"""Reading judged queries: what counts, what is reported, and where a fault is."""

import gzip
import json
from pathlib import Path

import pytest

from app.errors import BadFile
from indexer.evaluation.dataset import read_corpus, read_folder, read_qrels
from tests.indexer.judged import CORPUS, QUERIES, write_folder, write_lines


def refusal(folder: Path, *, split: str = "test") -> str:
    with pytest.raises(BadFile) as refused:
        read_folder(folder, split=split)
    return str(refused.value)


def test_only_judged_queries_with_a_relevant_document_count(tmp_path: Path) -> None:
    dataset = read_folder(write_folder(tmp_path), split="test")
    assert list(dataset.queries) == list(dataset.qrels) == ["q-otter", "q-lynx", "q-newt"]
    assert dataset.qrels["q-lynx"] == {"d9": 2}
    assert (dataset.n_documents, dataset.n_judgements) == (20, 3)
    assert dataset.notes == ("1 judged queries have no relevant document and are left out: q-pointless",)


def test_judgements_without_query_or_document_are_counted_and_named(tmp_path: Path) -> None:
    qrels = [("q-otter", "d0", 1), ("q-otter", "gone", 1), ("nobody", "d1", 1), ("no-one", "d1", 1)]
    dataset = read_folder(write_folder(tmp_path, qrels=qrels), split="test")
    assert dataset.qrels == {"q-otter": {"d0": 1, "gone": 1}}
    assert dataset.notes == (
        "2 judged queries have no text: nobody, no-one",
        "1 judgements name documents that the corpus lacks: gone",
    )


def test_the_first_queries_keep_their_order_and_the_cut_is_noted(tmp_path: Path) -> None:
    dataset = read_folder(write_folder(tmp_path), split="test").first(2)
    assert list(dataset.queries) == list(dataset.qrels) == ["q-otter", "q-lynx"]
    assert dataset.notes[-1] == "only the first 2 of 3 queries were asked"
    assert dataset.first(2) is dataset


def test_gzipped_files_are_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    for name in ("corpus.jsonl", "queries.jsonl"):
        plain = folder / name
        (folder / f"{name}.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    assert read_folder(folder, split="test").n_documents == 20


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('\ufeff{"_id": "a", "text": "one\u2028two\x85three"}\r\n\r\n', encoding="utf-8")
    assert [document.text for document in read_corpus(path)] == ["one\u2028two\x85three"]


def test_a_first_line_with_a_number_is_a_judgement(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("q\td\t1\nq\te\t2.0\n")
    assert read_qrels(path) == {"q": {"d": 1, "e": 2}}


def test_a_missing_split_is_named_with_those_that_exist(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    assert refusal(folder, split="dev") == f"{folder} has no split 'dev'; there are test"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (write_folder(tmp_path) / "corpus.jsonl").unlink()
    assert refusal(tmp_path) == f"{tmp_path} has neither corpus.jsonl nor corpus.jsonl.gz"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"{", "is no JSON: "),
        (b"[" * 100_000, "is no JSON: "),
        (b"[]", "is no JSON object"),
        (b"\xff", "is not UTF-8: "),
        (b'{"text": "x"}', "'_id' is missing"),
        (b'{"_id": 7, "text": "x"}', "'_id' is no string or empty"),
        (b'{"_id": "", "text": "x"}', "'_id' is no string or empty"),
        (b'{"_id": "d0", "text": "x"}', "the id 'd0' is that of line 1"),
        (b'{"_id": "x"}', "'text' is missing"),
        (b'{"_id": "x", "text": 1}', "'text' is no string"),
        (b'{"_id": "x", "text": "x", "title": []}', "'title' is no string"),
    ],
)
def test_a_bad_line_of_the_corpus_is_named(tmp_path: Path, line: bytes, what: str) -> None:
    corpus = write_folder(tmp_path) / "corpus.jsonl"
    corpus.write_bytes(json.dumps(CORPUS[0]).encode() + b"\n\n" + line + b"\n")
    assert refusal(tmp_path).startswith(f"{corpus}, line 3: {what}")


def test_a_blank_query_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, queries=[*QUERIES, {"_id": "q", "text": " "}])
    assert refusal(folder) == f"{folder / 'queries.jsonl'}, line 6: the query 'q' is blank"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("q d 1", "has 1 columns, not query-id, corpus-id and score between tabs"),
        ("q\t0\td\t1", "has 4 columns, not query-id, corpus-id and score between tabs"),
        ("q\td\thigh", "the score 'high' is no whole number"),
        ("q\td\t0.5", "the score '0.5' is no whole number"),
        ("q\td\tnan", "the score 'nan' is no whole number"),
        ("q-otter\td0\t2", "the query 'q-otter' and the document 'd0' were judged before"),
    ],
)
def test_a_bad_judgement_is_named(tmp_path: Path, line: str, what: str) -> None:
    path = write_folder(tmp_path) / "qrels" / "test.tsv"
    path.write_text(f"query-id\tcorpus-id\tscore\nq-otter\td0\t1\n{line}\n")
    assert refusal(tmp_path) == f"{path}, line 3: {what}"


def test_an_empty_split_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, qrels=[])
    assert refusal(folder) == f"{folder / 'qrels' / 'test.tsv'} has no judgement"


def test_judgements_of_other_queries_alone_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, qrels=[("nobody", "d0", 1), ("q-otter", "d0", 0)])
    assert refusal(folder).startswith(f"no query of {folder / 'queries.jsonl'} has a relevant document in ")


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, corpus=[])
    assert refusal(folder) == f"{folder / 'corpus.jsonl'} has no document"


def test_a_cut_off_archive_is_refused(tmp_path: Path) -> None:
    corpus = write_lines(write_folder(tmp_path) / "corpus.jsonl", CORPUS)
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(corpus.read_bytes())[:-20])
    corpus.unlink()
    assert refusal(tmp_path).startswith(f"{tmp_path / 'corpus.jsonl.gz'} is damaged after line ")
