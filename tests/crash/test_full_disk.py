"""Service and worker on a disk that becomes full, and gets room again."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import httpx
import pytest

from tests.crash.checks import faults_of
from tests.crash.installation import Installation
from tests.crash.ledger import Ledger
from tests.crash.searching import MODES, search
from tests.crash.test_kills import SMALL
from tests.crash.writing import COLLECTION, make_text, revision_name
from tests.e2e.conftest import free_port
from tests.mounts import SmallDisk, small_disk

N_SENTENCES = 400
"""About 30 kB of text."""
MAX_DOCUMENTS = 400
GOES_ON_WITHIN_S = 60.0


class Client:
    """Writes one document after the other, and notes what was acknowledged."""

    def __init__(self, url: str) -> None:
        self.ledger = Ledger()
        self.http = httpx.Client(base_url=url, timeout=60)
        self._random = Random(1)

    def put(self, number: int) -> httpx.Response:
        document_id = str(number)
        text = make_text(revision_name(number), self._random, n_sentences=N_SENTENCES)
        self.ledger.begin(document_id, text)
        answer = self.http.put(f"/v1/collections/{COLLECTION}/documents/{document_id}", json={"text": text})
        if answer.is_success:
            self.ledger.acknowledge(document_id, text, is_visible=answer.status_code != 202)
        return answer

    def put_until(self, is_reached: Callable[[httpx.Response], bool], *, first: int) -> int:
        """The number of the next document."""
        for number in range(first, first + MAX_DOCUMENTS):
            if is_reached(self.put(number)):
                return number + 1
        raise AssertionError("it was not reached")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "home", size="4m") as disk:
        yield disk


@pytest.fixture
def installation(tmp_path: Path, disk: SmallDisk) -> Iterator[Installation]:
    installation = Installation(tmp_path, port=free_port(), encoder="stand-in", settings=SMALL)
    try:
        installation.start()
        httpx.put(f"{installation.url}/v1/collections/{COLLECTION}").raise_for_status()
        yield installation
    finally:
        installation.stop()


@pytest.fixture
def client(installation: Installation) -> Iterator[Client]:
    client = Client(installation.url)
    yield client
    client.http.close()


def test_a_full_disk_is_said_and_nothing_acknowledged_is_lost_and_writes_go_on_when_there_is_room(
    installation: Installation, client: Client, disk: SmallDisk
) -> None:
    n_put = client.put_until(lambda answer: answer.status_code == 507, first=0)
    refused = client.put(n_put)
    assert (refused.status_code, refused.json()["type"]) == (507, "urn:bifocal:problem:storage-full")
    assert refused.headers["retry-after"] == "5"
    first_text = client.ledger.view("0").text
    assert first_text is not None
    for mode in MODES:  # reading goes on
        hits = search(client.http, first_text, mode).raise_for_status().json()["hits"]
        assert "0" in {hit["document_id"] for hit in hits}

    disk.resize("100m")
    until = time.monotonic() + GOES_ON_WITHIN_S
    while client.put(n_put).status_code != 201:
        assert time.monotonic() < until, installation.logs()
        time.sleep(0.1)
    assert faults_of(installation, client.ledger, client.ledger.ids()) == []
    assert installation.dead() == []


def test_an_installation_that_is_killed_on_a_full_disk_loses_nothing(
    installation: Installation, client: Client, disk: SmallDisk
) -> None:
    client.put_until(lambda answer: answer.status_code == 507, first=0)
    installation.kill("service", "worker")
    installation.bury()
    disk.resize("100m")
    installation.start()
    assert faults_of(installation, client.ledger, client.ledger.ids()) == []
