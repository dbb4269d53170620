"""Choosing the weight of the dense leg."""

from app.domain import Fusion
from indexer.evaluation.asking import Answer, Ask
from indexer.evaluation.configurations import Configuration
from indexer.evaluation.dataset import Dataset
from indexer.evaluation.tuning import N_TRIALS, tune

DATASET = Dataset(name="made", split="train", queries={"q": "one"}, qrels={"q": {"d": 1}})


def searching(best_weight: float, *, tolerance: float = 0.0) -> Ask:
    """The relevant document sinks by a rank for each 0.05 between the weight and the best one."""

    def ask(query: str, configuration: Configuration) -> Answer:
        assert configuration.fusion is not None
        away = max(0.0, abs(configuration.fusion.dense_weight - best_weight) - tolerance)
        return Answer(
            (*(f"x{i}" for i in range(round(away / 0.05))), "d"), {"total": 1.0}, is_truncated=False
        )

    return ask


def test_the_best_weight_is_found_at_and_between_the_coarse_steps() -> None:
    for weight in (0.0, 0.3, 0.35, 0.65, 1.0):
        tuning = tune(DATASET, searching(weight))
        assert (tuning.best.dense_weight, tuning.best.ndcg) == (weight, 1.0)


def test_without_a_gain_the_weight_nearest_to_the_default_is_chosen() -> None:
    tuning = tune(DATASET, searching(0.5, tolerance=1.0))
    assert tuning.configuration.fusion == Fusion()


def test_trials_are_ordered_by_weight_and_each_query_is_counted() -> None:
    n_asked = []
    tuning = tune(DATASET, searching(0.35), advance=lambda: n_asked.append(1))
    weights = [trial.dense_weight for trial in tuning.trials]
    assert weights == sorted(set(weights))
    assert len(weights) == len(n_asked) == N_TRIALS
