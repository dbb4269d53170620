"""Rounds of writing, killing, starting again and looking; all over one store."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal, get_args

import httpx

from tests.crash.checks import faults_of
from tests.crash.installation import ROLES, Installation, Role
from tests.crash.ledger import Ledger
from tests.crash.searching import Searcher
from tests.crash.traps import Trap, any_trap
from tests.crash.writing import COLLECTION, Writer, counting, make_text, revision_name
from tests.e2e.conftest import free_port

Kind = Literal["service", "worker", "both", "point"]
KINDS: Sequence[Kind] = get_args(Kind)
KILLED: Mapping[Kind, Sequence[Role]] = {
    "service": ["service"],
    "worker": ["worker"],
    "both": ROLES,
    "point": ROLES,  # where it is not reached
}
MAX_ACKNOWLEDGED = 30
"""Before a kill; how many is a matter of chance, and so is the moment after the last of them."""
MOMENT_S = 0.1
WRITTEN_WITHIN_S = 20.0
TRAP_WITHIN_S = 5.0
"""A point that is not reached by then becomes a kill of both at that moment."""
N_OTHERS = 20
"""Documents that nobody touched, looked at after each round."""
GOES_ON_S = 0.3
"""After a kill: what is left of the installation is written to for that long."""


@dataclass(frozen=True, slots=True)
class Round:
    kind: Kind
    trap: Trap | None
    is_trap_sprung: bool
    killed: tuple[Role, ...]
    recovery_s: float
    n_searches_judged: int
    faults: tuple[str, ...]


class Trial:
    def __init__(
        self, installation: Installation, *, n_writers: int, n_documents_each: int, seed: int
    ) -> None:
        self.installation = installation
        self.ledger = Ledger()
        self._random = Random(seed)
        self._numbers = counting()
        self._ids = [[f"{writer}-{i}" for i in range(n_documents_each)] for writer in range(n_writers)]

    def begin(self, *, n_documents_before: int = 0) -> None:
        """Start it, with a collection of documents that nobody will touch."""
        self.installation.start()
        with httpx.Client(base_url=f"{self.installation.url}/v1/collections", timeout=90) as client:
            client.put(f"/{COLLECTION}").raise_for_status()
            ids = [f"before-{i}" for i in range(n_documents_before)]
            for start in range(0, len(ids), 200):
                self._fill(client, ids[start : start + 200])

    def _fill(self, client: httpx.Client, ids: Sequence[str]) -> None:
        texts = {each: make_text(revision_name(self._numbers()), self._random) for each in ids}
        for document_id, text in texts.items():
            self.ledger.begin(document_id, text)
        documents = [{"id": document_id, "text": text} for document_id, text in texts.items()]
        answer = client.post(
            f"/{COLLECTION}/documents", json={"documents": documents}, headers={"Prefer": "wait=60"}
        )
        answer.raise_for_status()
        for document_id, text in texts.items():
            self.ledger.acknowledge(document_id, text, is_visible=answer.status_code == 200)

    def round(self, kind: Kind) -> Round:
        trap = any_trap(self._random) if kind == "point" else None
        with self._clients() as clients:
            is_sprung = self._kill(kind, trap)
            killed = tuple(self.installation.dead())
            time.sleep(GOES_ON_S)
        self.installation.bury()
        recovery_s = self.installation.start()
        faults = [fault for client in clients for fault in client.faults]
        faults += faults_of(self.installation, self.ledger, self._ids_to_look_at())
        n_judged = sum(client.n_judged for client in clients if isinstance(client, Searcher))
        return Round(kind, trap, is_sprung, killed, recovery_s, n_judged, tuple(faults))

    def _ids_to_look_at(self) -> list[str]:
        """All that clients wrote, and some of the others."""
        written = {each for ids in self._ids for each in ids}.intersection(self.ledger.ids())
        others = sorted(set(self.ledger.ids()) - written)
        return [*sorted(written), *self._random.sample(others, min(N_OTHERS, len(others)))]

    @contextmanager
    def _clients(self) -> Iterator[Sequence[Writer | Searcher]]:
        url, seeds = self.installation.url, self._random
        clients: list[Writer | Searcher] = [
            Writer(url, self.ledger, ids, random=Random(seeds.random()), numbers=self._numbers)
            for ids in self._ids
        ]
        clients.append(Searcher(url, self.ledger, random=Random(seeds.random())))
        end = threading.Event()
        with ThreadPoolExecutor(len(clients)) as pool:
            running = [pool.submit(client.run, end) for client in clients]
            try:
                yield clients
            finally:
                end.set()
        for each in running:
            each.result()

    def _kill(self, kind: Kind, trap: Trap | None) -> bool:
        """Whether the trap was what killed."""
        if trap is None:
            self._wait_for_acknowledgements(self._random.randint(1, MAX_ACKNOWLEDGED))
            time.sleep(self._random.uniform(0, MOMENT_S))
        else:
            self.installation.set_trap(trap)
            until = time.monotonic() + TRAP_WITHIN_S
            while not self.installation.dead() and time.monotonic() < until:
                time.sleep(0.01)
            if not self.installation.take_trap_away():
                return True
        self.installation.kill(*KILLED[kind])
        return False

    def _wait_for_acknowledgements(self, n: int) -> None:
        n_enough, until = self.ledger.n_acknowledged + n, time.monotonic() + WRITTEN_WITHIN_S
        while self.ledger.n_acknowledged < n_enough and time.monotonic() < until:
            time.sleep(0.002)


@contextmanager
def trial(
    folder: Path,
    *,
    encoder: Literal["stand-in", "real"],
    seed: int,
    n_writers: int,
    n_documents_each: int,
    n_documents_before: int = 0,
    settings: dict[str, str],
) -> Iterator[Trial]:
    installation = Installation(folder, port=free_port(), encoder=encoder, settings=settings)
    try:
        running = Trial(installation, n_writers=n_writers, n_documents_each=n_documents_each, seed=seed)
        running.begin(n_documents_before=n_documents_before)
        yield running
    finally:
        installation.stop()
