"""The files of an evaluation, and that nothing in them is taken for markup."""

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from indexer.evaluation.asking import Answer, Measured, ask_all
from indexer.evaluation.comparison import changes, differences
from indexer.evaluation.configurations import Configuration
from indexer.evaluation.dataset import Dataset
from indexer.evaluation.metrics import METRICS, NDCG
from indexer.evaluation.results import Evaluation
from indexer.evaluation.writing import write

HOSTILE = """</td><script>alert("1")</script><img src=x onerror='alert(2)'>{{ 7 * 7 }} & "quotes" """


def dataset_of(queries: Mapping[str, str]) -> Dataset:
    """The document `d` is relevant to each."""
    return Dataset(
        name="made", split="test", queries=queries, qrels={query_id: {"d": 1} for query_id in queries}
    )


def measured_of(dataset: Dataset, name: str, rankings: Sequence[Sequence[str]]) -> Measured:
    """Of a search that gives these rankings, one after the other."""
    by_text = dict(zip(dataset.queries.values(), rankings, strict=True))

    def ask(query: str, _: Configuration) -> Answer:
        return Answer(tuple(by_text[query]), {"encode": 2.0, "total": 3.0}, is_truncated=False)

    return ask_all(dataset, Configuration(name, "dense"), ask)


def evaluation_of(dataset: Dataset, *measured: Measured) -> Evaluation:
    return Evaluation(
        dataset=dataset,
        measured=measured,
        differences=differences(measured),
        subject={"model": HOSTILE},
        indexed=None,
        made_at=dt.datetime(2025, 1, 2, tzinfo=dt.UTC),
    )


@pytest.fixture
def evaluation() -> Evaluation:
    """`b` is better on q1, worse on q2, equal on q3."""
    dataset = dataset_of({"q1": "one", "q2": "two", "q3": "three"})
    first = measured_of(dataset, "a", [["x", "d"], ["d"], ["d"]])
    return evaluation_of(dataset, first, measured_of(dataset, "b", [["d"], [], ["d"]]))


def test_results_hold_figures_conditions_and_are_json(evaluation: Evaluation, tmp_path: Path) -> None:
    found = write(evaluation, tmp_path)
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == found
    first, second = found["configurations"]
    assert second["metrics"][NDCG]["mean"] == pytest.approx(2 / 3)
    assert first["latency_ms"] == {"encode": {"p50": 2.0, "p95": 2.0}, "total": {"p50": 3.0, "p95": 3.0}}
    assert found["made_at"] == "2025-01-02T00:00:00+00:00"
    assert {"machine", "versions", "method", "data_set"} <= set(found)
    assert [each["metric"] for each in found["differences"]] == list(METRICS)


def test_writing_twice_gives_the_same_files(evaluation: Evaluation, tmp_path: Path) -> None:
    write(evaluation, tmp_path / "one")
    write(evaluation, tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["a.run", "b.run", "queries.tsv", "report.html", "results.json"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_runs_have_the_six_columns_of_trec_and_scores_that_keep_the_order(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    write(evaluation, tmp_path)
    assert (tmp_path / "a.run").read_text().splitlines() == [
        "q1 Q0 x 1 2 a",
        "q1 Q0 d 2 1 a",
        "q2 Q0 d 1 1 a",
        "q3 Q0 d 1 1 a",
    ]


def test_ids_with_white_space_stay_one_column(tmp_path: Path) -> None:
    dataset = dataset_of({"q\t1": "one"})
    write(evaluation_of(dataset, measured_of(dataset, "a", [["my file.pdf"]])), tmp_path)
    assert (tmp_path / "a.run").read_text() == "q%091 Q0 my%20file.pdf 1 1 a\n"


def test_values_of_each_query_are_a_table(evaluation: Evaluation, tmp_path: Path) -> None:
    write(evaluation, tmp_path)
    lines = [line.split("\t") for line in (tmp_path / "queries.tsv").read_text().splitlines()]
    assert lines[0] == ["query_id", "query", *(f"{name} {metric}" for name in "ab" for metric in METRICS)]
    assert lines[1][:3] == ["q1", "one", "0.63093"]


def test_changes_go_from_the_greatest_win_to_the_greatest_loss(evaluation: Evaluation) -> None:
    found = changes(*evaluation.measured)
    assert [(change.query_id, round(change.difference, 3)) for change in found] == [
        ("q1", 0.369),
        ("q3", 0.0),
        ("q2", -1.0),
    ]


def test_the_report_shows_wins_losses_and_plots(evaluation: Evaluation, tmp_path: Path) -> None:
    write(evaluation, tmp_path)
    page = LexborHTMLParser((tmp_path / "report.html").read_bytes())
    text = page.body.text(separator=" ") if page.body else ""
    assert "b is better on 1 queries, worse on 1, equal on 1." in text
    [win], [loss] = page.css("td.win"), page.css("td.loss")
    assert (win.text(), loss.text()) == ("+0.369", "-1.000")
    assert len(page.css("svg circle")) == 2 * len(METRICS)
    assert len(page.css("svg rect.win")) == len(page.css("svg rect.loss")) == 1


def test_the_report_of_one_configuration_compares_nothing(tmp_path: Path) -> None:
    dataset = dataset_of({"q": "only"})
    write(evaluation_of(dataset, measured_of(dataset, "a", [["d"]])), tmp_path)
    page = LexborHTMLParser((tmp_path / "report.html").read_bytes())
    assert "Differences" not in [heading.text() for heading in page.css("h2")]


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    dataset = dataset_of({HOSTILE: HOSTILE, "q2": "two"})
    first = measured_of(dataset, "a", [["x", "d"], []])
    write(evaluation_of(dataset, first, measured_of(dataset, "b", [["d"], []])), tmp_path)
    page = LexborHTMLParser((tmp_path / "report.html").read_bytes())
    assert page.css("script, img") == []
    assert HOSTILE in [cell.text() for cell in page.css("td")]
    assert HOSTILE in [code.text() for code in page.css("code")]


def test_the_report_asks_nothing_from_outside(evaluation: Evaluation, tmp_path: Path) -> None:
    write(evaluation, tmp_path)
    page = LexborHTMLParser((tmp_path / "report.html").read_bytes())
    assert page.css("[src], [href], link, script, iframe") == []
    [policy] = page.css('meta[http-equiv="Content-Security-Policy"]')
    assert policy.attributes["content"] == "default-src 'none'; style-src 'unsafe-inline'"
