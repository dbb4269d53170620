"""Answers over HTTP: to SQuAD's questions with their paragraphs given, and out of all paragraphs.

    python benchmarks/questions.py [--given 500] [--open 1000] [--home DIR]

Reads SQuAD 1.1 dev from BIFOCAL_DATA, and takes questions of all its articles, evenly. Given: `POST
/v1/answer` is compared with what `bifocal evaluate --task qa` does with the same questions. Open: all
paragraphs are indexed, and `POST /v1/collections/{collection}/answer` is asked without being told where to
look. Writes benchmarks/results/questions.json.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
import numpy as np

from app.engine.reading_models import load_reading_models
from app.settings import Settings
from benchmarks.environment import write_result
from benchmarks.serving import percentiles, served
from indexer.cli.composition import open_store
from indexer.cli.corpora import put_in
from indexer.evaluation.dataset import CorpusDocument
from indexer.evaluation.task_examples import ContextQuestion, read_squad
from indexer.evaluation.task_judging import GivenAnswer, judge_answers
from indexer.evaluation.task_models import answering

DATA = Path(os.environ.get("BIFOCAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
SQUAD = DATA / "qa" / "squad" / "dev-v1.1.json.gz"
COLLECTION = "squad"
DEPTH = 5
N_WARM_UP = 20


def evenly(questions: Sequence[ContextQuestion], n: int) -> Sequence[ContextQuestion]:
    """`n` of them, or all; the first of each of `n` equal stretches."""
    n = min(n, len(questions))
    return [questions[i * len(questions) // n] for i in range(n)]


def paragraphs(questions: Sequence[ContextQuestion]) -> Mapping[str, CorpusDocument]:
    """By their text; those of an article are numbered."""
    found: dict[str, CorpusDocument] = {}
    for each in questions:
        if each.context not in found:
            title = (each.title or "").replace("_", " ")
            found[each.context] = CorpusDocument(f"{each.title}/{len(found)}", title, each.context)
    return found


def judged(
    questions: Sequence[ContextQuestion], answer: Callable[[ContextQuestion], GivenAnswer]
) -> dict[str, float]:
    metrics = judge_answers(questions, answer).metrics
    return {name: round(metrics[name].mean, 4) for name in ("F1", "exact match")}


def given(client: httpx.Client, questions: Sequence[ContextQuestion]) -> dict[str, Any]:
    taken: list[float] = []
    answers: dict[str, dict[str, str]] = {"http": {}, "offline": {}}

    def ask(question: ContextQuestion) -> GivenAnswer:
        body = {"question": question.question, "contexts": [question.context], "top_k": 1}
        found = timed(client, "/v1/answer", body, taken)
        answers["http"][question.id] = found.text
        return found

    with closing(load_reading_models(Settings.from_environment())) as models:
        assert models.reader is not None, "no model reads"
        read = answering(models.reader)

        def read_alone(question: ContextQuestion) -> GivenAnswer:
            found = read(question)
            answers["offline"][question.id] = found.text
            return found

        offline = judged(questions, read_alone)
    return {
        "n_questions": len(questions),
        "http": judged(questions, ask),
        "offline": offline,
        "n_different_answers": sum(
            answers["http"][each.id] != answers["offline"][each.id] for each in questions
        ),
        **percentiles(taken),
    }


def timed(client: httpx.Client, path: str, body: Mapping[str, Any], taken: list[float]) -> GivenAnswer:
    """The best answer; empty where there is none."""
    began = time.perf_counter()
    response = client.post(path, json=body)
    taken.append(1000 * (time.perf_counter() - began))
    best = next(iter(response.raise_for_status().json()["answers"]), None)
    return GivenAnswer("", 0.0) if best is None else GivenAnswer(best["answer"], best["score"])


def opened(
    client: httpx.Client, questions: Sequence[ContextQuestion], documents: Mapping[str, CorpusDocument]
) -> dict[str, Any]:
    taken: list[float] = []
    ranks = [rank_of_gold(client, each, documents[each.context].id) for each in questions]

    def ask(question: ContextQuestion) -> GivenAnswer:
        body = {"question": question.question, "top_k": 1}
        return timed(client, f"/v1/collections/{COLLECTION}/answer", body, taken)

    for each in questions[:N_WARM_UP]:
        ask(each)
    taken.clear()
    figures = judged(questions, ask)
    return {
        "n_questions": len(questions),
        "n_paragraphs": len(documents),
        **figures,
        **{f"recall@{k}": round(float(np.mean([rank < k for rank in ranks])), 4) for k in (1, DEPTH)},
        **percentiles(taken),
    }


def rank_of_gold(client: httpx.Client, question: ContextQuestion, document_id: str) -> int:
    """0-based place of the question's own paragraph in hybrid search; `DEPTH` if it is further behind."""
    body = {"query": question.question, "top_k": DEPTH, "passages_per_hit": 1}
    response = client.post(f"/v1/collections/{COLLECTION}/search/asymmetric", json=body)
    ids = [hit["document_id"] for hit in response.raise_for_status().json()["hits"]]
    return ids.index(document_id) if document_id in ids else DEPTH


def measure(home: Path, *, n_given: int, n_open: int) -> dict[str, Any]:
    questions = read_squad(SQUAD)
    documents = paragraphs(questions)
    settings = Settings.from_environment().model_copy(update={"home": home})
    if n_open:
        with open_store(settings) as store:
            put_in(store, settings, COLLECTION, iter(documents.values()), n_documents=len(documents))
    with served(home) as (address, _, _), httpx.Client(base_url=address, timeout=120) as client:
        models = client.get("/v1/models").raise_for_status().json()["models"]
        reader = next(model for model in models if model["role"] == "reader")
        figures: dict[str, Any] = {
            "reader": {name: reader[name] for name in ("name", "fingerprint", "runtime")}
        }
        if n_given:
            figures["given"] = given(client, evenly(questions, n_given))
            print("given", figures["given"], flush=True)
        if n_open:
            figures["open"] = opened(client, evenly(questions, n_open), documents)
            print("open", figures["open"], flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--given", type=int, default=500, help="Questions with their paragraph; 0: none.")
    parser.add_argument("--open", type=int, default=1_000, help="Questions without; 0: none.")
    parser.add_argument("--home", type=Path, help="Folder of the collection; not given: temporary.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        figures = measure(arguments.home or Path(temporary), n_given=arguments.given, n_open=arguments.open)
    print(write_result("questions", figures))


if __name__ == "__main__":
    main()
