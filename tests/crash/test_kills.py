"""kill -9 of the service, of the worker, of both, at any moment and inside publication: nothing is lost.

benchmarks/kills.py does the same 200 times, with the real encoder.
"""

from collections.abc import Iterator

import httpx
import pytest

from tests.crash.checks import faults_of
from tests.crash.rounds import Kind, Trial, trial

ROUNDS: list[Kind] = ["service", "worker", "both", "point", "point"] * 2
SMALL = {"BIFOCAL_COMPACT_TAIL": "8", "BIFOCAL_WAIT_S": "1"}
"""A new base after eight vectors: it is published all the time."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """One store, killed again and again."""
    folder = tmp_path_factory.mktemp("crash")
    with trial(
        folder, encoder="stand-in", seed=5, n_writers=3, n_documents_each=8, settings=SMALL
    ) as started:
        yield started


@pytest.mark.parametrize("kind", ROUNDS)
def test_a_kill_loses_nothing_and_shows_nothing_that_is_not_there(running: Trial, kind: Kind) -> None:
    n_before = running.ledger.n_acknowledged
    done = running.round(kind)
    assert done.faults == (), running.installation.logs()
    assert done.killed
    assert running.ledger.n_acknowledged > n_before


def test_a_document_that_vanished_would_be_noticed(running: Trial) -> None:
    ledger = running.ledger
    victim = next(each for each in ledger.ids() if ledger.view(each).text is not None)
    httpx.delete(f"{running.installation.url}/v1/collections/crash/documents/{victim}").raise_for_status()
    faults = faults_of(running.installation, ledger, ledger.ids())
    assert [fault.partition(" is ")[0] for fault in faults] == [f"lost: {victim}"]
