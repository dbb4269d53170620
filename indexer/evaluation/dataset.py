"""Judged queries: BEIR folders, and files of queries and judgements for a collection that exists.

Only queries that are judged and have text count, as in BEIR. A judged query without any relevant document
is left out, too: it gives 0 to every ranking, so it tells nothing of any. What is left out is counted.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from app.errors import BadFile
from indexer.evaluation.lines import columns, find_file, objects, refuse

Qrels = Mapping[str, Mapping[str, int]]
"""Query id to document id to relevance; greater is more relevant, 0 and below is not."""

MAX_NAMED = 3
"""Ids that a note quotes."""


@dataclasses.dataclass(frozen=True, slots=True)
class CorpusDocument:
    id: str
    title: str | None
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Dataset:
    name: str
    split: str
    queries: Mapping[str, str]
    """Id to text, of those that count, in the order of their file."""
    qrels: Qrels
    """Of the same queries in the same order."""
    corpus: Path | None = None
    """None: the documents are in a collection already."""
    n_documents: int = 0
    """Of the corpus."""
    notes: tuple[str, ...] = ()
    """What was left out or looks wrong."""

    @property
    def n_judgements(self) -> int:
        return sum(len(judged) for judged in self.qrels.values())

    def first(self, n_queries: int) -> "Dataset":
        """The same with at most that many queries."""
        ids = list(islice(self.queries, n_queries))
        if len(ids) == len(self.queries):
            return self
        return dataclasses.replace(
            self,
            queries={query_id: self.queries[query_id] for query_id in ids},
            qrels={query_id: self.qrels[query_id] for query_id in ids},
            notes=(*self.notes, f"only the first {n_queries} of {len(self.queries)} queries were asked"),
        )


def read_folder(folder: Path, *, split: str) -> Dataset:
    """A folder in BEIR layout: corpus.jsonl, queries.jsonl (both may be gzipped), qrels/SPLIT.tsv.

    Raises:
        BadFile: something is missing, malformed or empty; the message names file and line.
    """
    qrels_path = folder / "qrels" / f"{split}.tsv"
    if not qrels_path.is_file():
        present = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
        raise BadFile(f"{folder} has no split {split!r}; there are {', '.join(present) or 'none'}")
    corpus = find_file(folder, "corpus.jsonl")
    judged = read_judged(find_file(folder, "queries.jsonl"), qrels_path)
    ids = {document.id for document in read_corpus(corpus)}
    if not ids:
        raise BadFile(f"{corpus} has no document")
    named = [document_id for of_query in judged.qrels.values() for document_id in of_query]
    unknown = _note("judgements name documents that the corpus lacks", [d for d in named if d not in ids])
    return dataclasses.replace(
        judged,
        name=folder.resolve().name,
        corpus=corpus,
        n_documents=len(ids),
        notes=(*judged.notes, *unknown),
    )


def read_judged(queries_path: Path, qrels_path: Path) -> Dataset:
    """Queries and judgements alone.

    Raises:
        BadFile: a file is malformed, or no query is left.
    """
    return counting(
        _read_queries(queries_path),
        read_qrels(qrels_path),
        name=queries_path.stem,
        split=qrels_path.stem,
        sources=(str(queries_path), str(qrels_path)),
    )


def counting(
    texts: Mapping[str, str], qrels: Qrels, *, name: str, split: str, sources: tuple[str, str]
) -> Dataset:
    """The queries that count. `sources` of the texts and of the judgements are for messages.

    Raises:
        BadFile: no query is left.
    """
    without_text = [query_id for query_id in qrels if query_id not in texts]
    judged = [query_id for query_id in texts if query_id in qrels]
    relevant = [query_id for query_id in judged if max(qrels[query_id].values(), default=0) > 0]
    if not relevant:
        raise BadFile(f"no query of {sources[0]} has a relevant document in {sources[1]}")
    pointless = [query_id for query_id in judged if max(qrels[query_id].values(), default=0) <= 0]
    return Dataset(
        name=name,
        split=split,
        queries={query_id: texts[query_id] for query_id in relevant},
        qrels={query_id: qrels[query_id] for query_id in relevant},
        notes=(
            *_note("judged queries have no text", without_text),
            *_note("judged queries have no relevant document and are left out", pointless),
        ),
    )


def read_corpus(path: Path) -> Iterator[CorpusDocument]:
    """One document after the other, their ids unique."""
    seen: dict[str, int] = {}
    for line, fields in objects(path):
        document_id = _new_id(path, line, fields, seen)
        title = fields.get("title")
        if title is not None and not isinstance(title, str):
            refuse(path, line, "'title' is no string")
        yield CorpusDocument(document_id, title or None, _text(path, line, fields))


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Three columns, query-id, corpus-id and score, below a line that names them.

    A first line whose third column is a number is a judgement, not a heading.
    """
    qrels: dict[str, dict[str, int]] = {}
    for line, values in columns(path):
        if len(values) != 3:
            refuse(path, line, f"has {len(values)} columns, not query-id, corpus-id and score between tabs")
        query_id, document_id, written = values
        score = _whole_number(written)
        if score is None:
            if line == 1:
                continue
            refuse(path, line, f"the score {written!r} is no whole number")
        if qrels.setdefault(query_id, {}).setdefault(document_id, score) != score:
            refuse(path, line, f"the query {query_id!r} and the document {document_id!r} were judged before")
    if not qrels:
        raise BadFile(f"{path} has no judgement")
    return qrels


def _read_queries(path: Path) -> dict[str, str]:
    seen: dict[str, int] = {}
    texts = {}
    for line, fields in objects(path):
        query_id = _new_id(path, line, fields, seen)
        texts[query_id] = _text(path, line, fields)
        if not texts[query_id].strip():
            refuse(path, line, f"the query {query_id!r} is blank")
    return texts


def _new_id(path: Path, line: int, fields: Mapping[str, Any], seen: dict[str, int]) -> str:
    found = fields.get("_id")
    if not isinstance(found, str) or not found:
        refuse(path, line, "'_id' is missing" if found is None else "'_id' is no string or empty")
    if found in seen:
        refuse(path, line, f"the id {found!r} is that of line {seen[found]}")
    seen[found] = line
    return found


def _text(path: Path, line: int, fields: Mapping[str, Any]) -> str:
    text = fields.get("text")
    if not isinstance(text, str):
        refuse(path, line, "'text' is missing" if text is None else "'text' is no string")
    return text


def _whole_number(written: str) -> int | None:
    """
    >>> _whole_number("2"), _whole_number("2.0"), _whole_number("2.5"), _whole_number("score")
    (2, 2, None, None)
    """
    try:
        number = float(written)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _note(what: str, ids: list[str]) -> list[str]:
    if not ids:
        return []
    named = ", ".join(ids[:MAX_NAMED])
    return [f"{len(ids)} {what}: {named}{', ...' if len(ids) > MAX_NAMED else ''}"]
