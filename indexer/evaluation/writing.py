"""The files of an evaluation: results.json, runs in TREC form, values of each query, a report to look at."""

import csv
import json
from pathlib import Path
from typing import Any

from indexer.evaluation.asking import Measured
from indexer.evaluation.metrics import METRICS
from indexer.evaluation.report import render
from indexer.evaluation.results import Evaluation, results


def write(evaluation: Evaluation, folder: Path) -> dict[str, Any]:
    """Write all files, replacing those of an evaluation before; gives what results.json holds."""
    folder.mkdir(parents=True, exist_ok=True)
    found = results(evaluation)
    written = json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "results.json").write_text(written + "\n", encoding="utf-8")
    for measured in evaluation.measured:
        write_run(measured, folder / f"{measured.name}.run")
    write_queries(evaluation, folder / "queries.tsv")
    (folder / "report.html").write_text(render(evaluation, found), encoding="utf-8")
    return found


def write_run(measured: Measured, path: Path) -> None:
    """Query id, Q0, document id, rank, score, name.

    trec_eval goes by the score and not by the rank, and orders equal scores its own way; so the score written
    is a rank, too, counted from the end. White space in an id, which the form cannot hold, becomes %20 and
    the like.
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for query_id, document_ids in measured.run.items():
            for rank, document_id in enumerate(document_ids, start=1):
                score = len(document_ids) - rank + 1
                fields = (_one_word(query_id), "Q0", _one_word(document_id), rank, score, measured.name)
                file.write(" ".join(str(field) for field in fields) + "\n")


def write_queries(evaluation: Evaluation, path: Path) -> None:
    """A line per query, a column per metric and configuration."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, dialect="excel-tab", lineterminator="\n")
        columns = [(measured, metric) for measured in evaluation.measured for metric in METRICS]
        writer.writerow(["query_id", "query", *(f"{measured.name} {metric}" for measured, metric in columns)])
        for i, (query_id, text) in enumerate(evaluation.dataset.queries.items()):
            values = [round(float(measured.metrics[metric][i]), 6) for measured, metric in columns]
            writer.writerow([query_id, " ".join(text.split()), *values])


def _one_word(written: str) -> str:
    """
    >>> _one_word("annual report.pdf")
    'annual%20report.pdf'
    """
    return "".join(f"%{ord(c):02X}" if c.isspace() else c for c in written)
