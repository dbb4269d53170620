"""Metrics of classification, entities and answers, for models that are trained and judged here."""

import re
import string
from collections import Counter
from collections.abc import Sequence

from seqeval.metrics import f1_score as seqeval_f1
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def accuracy(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Share of labels that are right, 0..1."""
    return float(accuracy_score(expected, predicted))


def macro_f1(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Mean of the F1 of each label that occurs in either; 0 for a label that is never right."""
    return float(f1_score(expected, predicted, average="macro", zero_division=0))


def span_f1(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    """F1 over entities, which count only with both borders and type right; tags in IOB2, as conlleval has it.

    >>> round(span_f1([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-LOC"]]), 4)
    0.6667
    """
    return float(seqeval_f1(_lists(expected), _lists(predicted), zero_division=0))


def exact_match(predicted: str, expected: Sequence[str]) -> float:
    """1 if the answer is one of the expected ones after `normalised`, else 0; without any, if it is empty.

    Source: Rajpurkar et al. 2016, section 6.1, and their evaluation script of 2018 for "no answer".
    """
    return max(float(normalised(predicted) == normalised(each)) for each in expected or [""])


def answer_f1(predicted: str, expected: Sequence[str]) -> float:
    """F1 over the words of the answer, counted with repetition; of several expected ones the best.

    >>> answer_f1("the tall oak", ["oak tree"])  # 1 of 2 words right, 1 of 2 found
    0.5
    """
    return max(_word_f1(normalised(predicted).split(), normalised(each).split()) for each in expected or [""])


def normalised(answer: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces.

    >>> normalised("The  U.S. Army's")
    'us armys'
    """
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split())


def auroc(scores: Sequence[float], is_positive: Sequence[bool]) -> float:
    """Chance that a positive has a greater score than a negative, ties counting half.

    Raises:
        ValueError: there are no positives or no negatives.
    """
    if len(set(is_positive)) < 2:
        raise ValueError("AUROC needs positives and negatives; only one of them was given")
    return float(roc_auc_score(is_positive, scores))


def _word_f1(predicted: Sequence[str], expected: Sequence[str]) -> float:
    if not predicted or not expected:
        return float(predicted == expected)
    n_shared = (Counter(predicted) & Counter(expected)).total()
    return 2 * n_shared / (len(predicted) + len(expected))


def _lists(tags: Sequence[Sequence[str]]) -> list[list[str]]:
    return [list(of_sentence) for of_sentence in tags]
