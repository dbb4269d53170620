"""Classifiers, as every implementation of `Rows` keeps them."""

import dataclasses
import datetime as dt
from collections.abc import Callable

import numpy as np
import pytest

from app.errors import ClassifierNotFound
from app.labels import ClassifierVersion, Confusion, LabelReport, TrainingReport
from app.storage.classifier_rows import TrainedClassifier
from app.storage.rows import Rows

OpenRows = Callable[[], Rows]

REPORT = TrainingReport(
    n_folds=5,
    accuracy=0.75,
    macro_f1=0.5,
    labels=(LabelReport("a\0😀", 3, 1.0, 0.5, 2 / 3), LabelReport("b", 2, 0.0, 0.0, 0.0)),
    confusions=(Confusion("b", "a\0😀", 2),),
    in_scope_rejected=0.05,
    n_out_of_scope=0,
    out_of_scope_rejected=None,
    scope_auroc=None,
)


def trained(name: str = "intents", *, n_examples: int = 5) -> TrainedClassifier:
    """Of other weights for each number of examples."""
    version = ClassifierVersion(
        name=name,
        version=0,
        is_active=False,
        labels=("a\0😀", "b"),
        multi_label=False,
        model="model",
        fingerprint="print",
        n_examples=n_examples,
        examples_digest=f"digest {n_examples}",
        scope_threshold=-0.25,
        report=REPORT,
        created_at=dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
    )
    random = np.random.default_rng(n_examples)
    return TrainedClassifier(
        version, random.normal(size=(2, 3)).astype(np.float32), random.normal(size=2).astype(np.float32)
    )


class ClassifiersContract:
    def test_a_classifier_is_kept_as_it_was_trained(self, rows: Rows, open_rows: OpenRows) -> None:
        given = trained()
        stored = rows.store_classifier(given, n_kept=3)
        kept = open_rows().classifier("intents")
        assert kept.version == stored
        assert np.array_equal(kept.weights, given.weights)
        assert np.array_equal(kept.biases, given.biases)
        expected = dataclasses.replace(given.version, version=1, is_active=True, created_at=stored.created_at)
        assert stored == expected
        assert stored.created_at > given.version.created_at

    def test_the_newest_training_is_active_and_earlier_ones_stay(self, rows: Rows) -> None:
        for n_examples in (5, 6):
            rows.store_classifier(trained(n_examples=n_examples), n_kept=3)
        versions = rows.classifier_versions("intents")
        assert [(v.version, v.is_active, v.n_examples) for v in versions] == [(2, True, 6), (1, False, 5)]
        assert rows.classifier("intents").version.version == 2
        assert np.array_equal(rows.classifier("intents", version=1).weights, trained(n_examples=5).weights)

    def test_an_earlier_version_can_be_made_active_again(self, rows: Rows, open_rows: OpenRows) -> None:
        for n_examples in (5, 6):
            rows.store_classifier(trained(n_examples=n_examples), n_kept=3)
        assert rows.activate_classifier("intents", 1).n_examples == 5
        assert open_rows().classifier("intents").version.version == 1
        assert rows.activate_classifier("intents", 1).is_active
        assert rows.store_classifier(trained(n_examples=7), n_kept=3).version == 3

    def test_only_the_newest_versions_are_kept(self, rows: Rows) -> None:
        for n_examples in range(2, 7):
            rows.store_classifier(trained(n_examples=n_examples), n_kept=3)
        assert [v.version for v in rows.classifier_versions("intents")] == [5, 4, 3]
        with pytest.raises(ClassifierNotFound, match="no version 2 of the classifier 'intents'"):
            rows.classifier("intents", version=2)

    def test_classifiers_are_listed_by_name_with_their_active_version(self, rows: Rows) -> None:
        for name in ("b", "a", "b"):
            rows.store_classifier(trained(name), n_kept=3)
        rows.activate_classifier("b", 1)
        assert [(v.name, v.version) for v in rows.classifiers()] == [("a", 1), ("b", 1)]

    def test_a_dropped_classifier_is_gone_and_its_name_is_free(self, rows: Rows) -> None:
        rows.store_classifier(trained("a"), n_kept=3)
        rows.store_classifier(trained("b"), n_kept=3)
        rows.drop_classifier("a")
        assert [v.name for v in rows.classifiers()] == ["b"]
        assert rows.store_classifier(trained("a"), n_kept=3).version == 1

    def test_an_unknown_classifier_is_not_found(self, rows: Rows) -> None:
        for ask in (
            rows.classifier,
            rows.classifier_versions,
            rows.drop_classifier,
            lambda name: rows.activate_classifier(name, 1),
        ):
            with pytest.raises(ClassifierNotFound, match="nowhere"):
                ask("nowhere")
