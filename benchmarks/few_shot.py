"""Classifiers trained from examples, through the service's interface, on Banking77 and CLINC150.

    python benchmarks/few_shot.py

Reads the sets from BIFOCAL_DATA. Banking77 with 10 examples a label is drawn three times from its training
split. CLINC150 is trained with its 100 training texts out of scope, which set the threshold. Writes
benchmarks/results/few_shot.json.
"""

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
import numpy as np

from app.api.schemas.inspection import MAX_TEXTS
from app.engine.few_shot import auroc
from benchmarks.environment import write_result
from benchmarks.serving import served

DATA = Path(os.environ.get("BIFOCAL_DATA", "../shared/data")) / "classification"
DRAWS = 3


@dataclass(frozen=True)
class Answers:
    labels: Sequence[str]
    scope_scores: np.ndarray
    out_of_scope: np.ndarray
    seconds: float


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as home,
        served(Path(home)) as (address, _, _),
        httpx.Client(base_url=address, timeout=600) as client,
    ):
        runtime = client.get("/v1/models").raise_for_status().json()["models"][0]["runtime"]
        figures: dict[str, Any] = {"runtime": runtime}
        for name, measure in STAGES.items():
            figures[name] = measure(client)
            print(write_result("few_shot", figures), flush=True)


def banking77_drawn(client: httpx.Client) -> dict[str, Any]:
    """10 examples of each label."""
    train, test = read("banking77/train"), read("banking77/test")
    draws = [measured(client, f"banking-{seed}", drawn(train, 10, seed), test) for seed in range(DRAWS)]
    mean = round(float(np.mean([draw["accuracy"] for draw in draws])), 4)
    return {"accuracy_mean": mean, "draws": draws}


def banking77_whole(client: httpx.Client) -> dict[str, Any]:
    return measured(client, "banking-all", read("banking77/train"), read("banking77/test"))


def clinc150(client: httpx.Client) -> dict[str, Any]:
    train, test, beyond = (read(f"clinc150/{name}") for name in ("train", "test", "oos_test"))
    unlabelled = [{"text": each["text"], "label": None} for each in read("clinc150/oos_train")]
    return measured(client, "clinc", train + unlabelled, test, beyond)


STAGES = {"banking77_10_a_label": banking77_drawn, "clinc150": clinc150, "banking77": banking77_whole}


def measured(
    client: httpx.Client,
    name: str,
    examples: Sequence[dict[str, Any]],
    test: Sequence[dict[str, Any]],
    beyond: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Train, then classify the test texts, and those out of scope."""
    answer = client.put(f"/v1/classifiers/{name}", json={"examples": examples})
    assert answer.status_code == 201, answer.text
    trained = answer.json()
    inside = classified(client, name, [each["text"] for each in test])
    right = [found == each["label"] for found, each in zip(inside.labels, test, strict=True)]
    figures = {
        "n_examples": trained["n_examples"],
        "n_labels": len(trained["labels"]),
        "train_s": {step: round(ms / 1000, 2) for step, ms in trained["timings_ms"].items()},
        "cross_validated_accuracy": round(trained["report"]["accuracy"], 4),
        "accuracy": round(float(np.mean(right)), 4),
        "texts_per_s": round(len(test) / inside.seconds),
    }
    if beyond:
        outside = classified(client, name, [each["text"] for each in beyond])
        figures |= {
            "out_of_scope_auroc": round(auroc(inside.scope_scores, outside.scope_scores), 4),
            "in_scope_rejected": round(float(inside.out_of_scope.mean()), 4),
            "out_of_scope_rejected": round(float(outside.out_of_scope.mean()), 4),
        }
    print(name, json.dumps(figures), flush=True)
    return figures


def classified(client: httpx.Client, name: str, texts: Sequence[str]) -> Answers:
    began = time.perf_counter()
    results = [each for batch in batches(texts) for each in answered(client, name, batch)]
    return Answers(
        labels=[each["labels"][0]["label"] for each in results],
        scope_scores=np.array([each["scope_score"] for each in results]),
        out_of_scope=np.array([each["out_of_scope"] for each in results]),
        seconds=time.perf_counter() - began,
    )


def answered(client: httpx.Client, name: str, texts: Sequence[str]) -> list[dict[str, Any]]:
    answer = client.post("/v1/classify/sequence", json={"texts": texts, "classifier": name, "top_k": 1})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), MAX_TEXTS):
        yield texts[start : start + MAX_TEXTS]


def drawn(examples: Sequence[dict[str, Any]], n: int, seed: int) -> list[dict[str, Any]]:
    """n of each label."""
    of_label = defaultdict(list)
    for example in examples:
        of_label[example["label"]].append(example)
    random = np.random.default_rng(seed)
    return [own[i] for _, own in sorted(of_label.items()) for i in random.permutation(len(own))[:n]]


def read(name: str) -> list[dict[str, Any]]:
    with (DATA / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [{"text": each["text"], "label": each["label"]} for each in map(json.loads, lines)]


if __name__ == "__main__":
    main()
