"""Choosing how hybrid search fuses, and how many documents are reranked."""

from collections.abc import Callable

from app.domain import Fusion, SearchSettings
from indexer.evaluation.asking import Answer, Ask
from indexer.evaluation.configurations import Configuration
from indexer.evaluation.dataset import Dataset
from indexer.evaluation.tuning import DEPTHS, N_RERANKED_TRIALS, N_TRIALS, tune

DATASET = Dataset(name="made", split="train", queries={"q": "one"}, qrels={"q": {"d": 1}})


def searching(n_before: Callable[[Configuration, Fusion], float]) -> Ask:
    """The relevant document stands behind so many others."""

    def ask(query: str, configuration: Configuration) -> Answer:
        assert configuration.fusion is not None
        n = round(n_before(configuration, configuration.fusion))
        return Answer((*(f"x{i}" for i in range(n)), "d"), {"total": 1.0}, is_truncated=False)

    return ask


def by_weight(best: float) -> Ask:
    return searching(lambda _, fusion: abs(fusion.dense_weight - best) / 0.05)


def test_the_best_weight_is_found_at_and_between_the_coarse_steps() -> None:
    for weight in (0.0, 0.3, 0.35, 0.65, 1.0):
        best = tune(DATASET, by_weight(weight)).best
        assert (best.fusion.dense_weight, best.ndcg) == (weight, 1.0)


def test_without_a_gain_nothing_is_changed() -> None:
    tuning = tune(DATASET, searching(lambda *_: 0))
    assert tuning.configuration.fusion == Fusion()
    assert tuning.settings == SearchSettings()


def test_the_method_is_changed_where_it_gains() -> None:
    tuning = tune(DATASET, searching(lambda _, fusion: 0 if fusion.method == "rrf" else 3))
    assert tuning.settings.fusion.method == "rrf"


def test_the_depth_is_chosen_at_the_best_weight() -> None:
    def n_before(_: Configuration, fusion: Fusion) -> float:
        return abs(fusion.dense_weight - 0.3) / 0.05 + (fusion.depth != 50)

    assert tune(DATASET, searching(n_before)).settings.fusion == Fusion("convex", 0.3, 50)


def test_of_candidates_that_do_equally_well_the_fewest_are_chosen() -> None:
    ask = searching(lambda configuration, _: 0 if (configuration.candidates or 0) >= 20 else 4)
    tuning = tune(DATASET, ask, is_reranked=True)
    assert tuning.settings.candidates == 20
    assert tuning.configuration.is_reranked
    assert not tune(DATASET, ask).configuration.is_reranked


def test_each_trial_and_each_query_is_counted() -> None:
    n_asked: list[int] = []
    tuning = tune(DATASET, by_weight(0.35), is_reranked=True, advance=lambda: n_asked.append(1))
    assert len(tuning.trials) == len(n_asked) == N_RERANKED_TRIALS > N_TRIALS
    assert [weight for weight, _ in tuning.weights] == sorted({weight for weight, _ in tuning.weights})
    assert len(tuning.weights) == N_TRIALS - 1 - len(DEPTHS)
