"""Training questions for mining, out of files in SQuAD's format and folders in BEIR's layout."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.domain import Hit
from indexer.evaluation.dataset import CorpusDocument, Dataset, read_corpus
from indexer.evaluation.lines import find_file
from indexer.training.joint.groups import NO_ANSWER, Candidate, read_groups
from indexer.training.joint.mining import Judged

WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Source:
    """Documents to search, and questions of which is known what answers them."""

    documents: Sequence[CorpusDocument]
    questions: Sequence[Judged]


def squad_source(files: Sequence[Path]) -> Source:
    """Paragraphs as documents; a paragraph in which the words of the answer occur is no negative.

    Raises:
        BadFile
    """
    keys: dict[tuple[str | None, str], str] = {}
    questions = []
    for file in files:
        for group in read_groups(file):
            (candidate,) = group.candidates
            key = keys.setdefault((candidate.title, candidate.text), f"paragraph-{len(keys)}")
            if candidate.answer not in (None, NO_ANSWER):
                lacks = _LacksAnswer(candidate)
                questions.append(Judged(group.question, frozenset({key}), candidate, lacks))
    documents = [CorpusDocument(key, title, text) for (title, text), key in keys.items()]
    return Source(documents, questions)


def beir_source(dataset: Dataset) -> Source:
    """A document that answers the same question, asked in the same words, is no negative."""
    asked: dict[str, set[frozenset[str]]] = {}
    for query_id, judged in dataset.qrels.items():
        for document_id in _relevant(judged):
            asked.setdefault(document_id, set()).add(_words(dataset.queries[query_id]))
    questions = []
    for query_id, judged in dataset.qrels.items():
        text = dataset.queries[query_id]
        other = _AnswersAnotherQuestion(_words(text), asked)
        questions.append(Judged(text, frozenset(_relevant(judged)), None, other))
    assert dataset.corpus is not None
    return Source(list(read_corpus(dataset.corpus)), questions)


def title_source(folder: Path) -> Source:
    """Titles as questions and the texts below them as their answers, for want of judged questions.

    A title says what its text is about, and texts with like titles are hard negatives. The documents are
    searched, and trained on, without their titles.

    Args:
        folder: with a corpus.jsonl in BEIR's layout; a document without title or text is left out.

    Raises:
        BadFile
    """
    documents, questions = [], []
    for document in read_corpus(find_file(folder, "corpus.jsonl")):
        if document.title and document.text.strip():
            documents.append(CorpusDocument(document.id, None, document.text))
            answer = Candidate(document.text, None, 1.0, None)
            questions.append(Judged(document.title, frozenset({document.id}), answer, _anything))
    return Source(documents, questions)


def _anything(_hit: Hit) -> bool:
    return True


class _LacksAnswer:
    def __init__(self, candidate: Candidate) -> None:
        assert candidate.answer is not None
        start, end = candidate.answer
        self._answer = candidate.text[start:end].casefold()

    def __call__(self, hit: Hit) -> bool:
        return self._answer not in hit.passages[0].text.casefold()


class _AnswersAnotherQuestion:
    def __init__(self, words: frozenset[str], asked: dict[str, set[frozenset[str]]]) -> None:
        self._words = words
        self._asked = asked

    def __call__(self, hit: Hit) -> bool:
        return self._words not in self._asked.get(hit.document_id, ())


def _relevant(judged: Mapping[str, int]) -> Iterator[str]:
    return (document_id for document_id, score in judged.items() if score > 0)


def _words(question: str) -> frozenset[str]:
    return frozenset(WORD.findall(question.casefold()))
