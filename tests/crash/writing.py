"""Clients that write, each to its own documents, and note what was acknowledged."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from random import Random

import httpx

from tests.crash.ledger import Ledger, Text

COLLECTION = "crash"
COMMON = "everyword"
"""In every sentence, and so in every passage."""
LETTERS = "bcfkmpqrtvwxz"
"""Of names of revisions: without vowels no stemmer makes two of them one."""
VOCABULARY = """
river valley bridge castle mountain forest harbour window garden letter engine signal copper silver winter
summer morning evening captain teacher doctor farmer market village machine pattern number
""".split()  # noqa: SIM905 - to be read
ANSWERED_S = 20.0
PAUSE_S = 0.002


def revision_name(number: int) -> str:
    """One word, another for each number.

    >>> revision_name(0), revision_name(170)
    ('zzbbbbb', 'zzbbccc')
    """
    digits = []
    for _ in range(5):
        number, digit = divmod(number, len(LETTERS))
        digits.append(LETTERS[digit])
    return "zz" + "".join(reversed(digits))


def name_in(text: str) -> str:
    return text.split(maxsplit=1)[0]


def make_text(name: str, random: Random, *, n_sentences: int | None = None) -> str:
    """Its name in every sentence, and first; one in five is long enough for several passages."""
    if n_sentences is None:
        n_sentences = 60 if random.random() < 0.2 else random.randint(1, 3)
    sentences = [" ".join([name, COMMON, *random.choices(VOCABULARY, k=7)]) for _ in range(n_sentences)]
    return ". ".join(sentences) + "."


class Writer:
    """Writes, replaces and deletes until it is stopped or the service is gone."""

    def __init__(
        self, url: str, ledger: Ledger, ids: Sequence[str], *, random: Random, numbers: Callable[[], int]
    ) -> None:
        self.faults: list[str] = []
        """Answers that no kill excuses."""
        self._url = url
        self._ledger = ledger
        self._ids = ids
        self._random = random
        self._numbers = numbers

    def run(self, end: threading.Event) -> None:
        with (
            contextlib.suppress(httpx.TransportError),  # killed: what was sent last is doubtful
            httpx.Client(base_url=f"{self._url}/v1/collections/{COLLECTION}", timeout=ANSWERED_S) as client,
        ):
            while not end.wait(PAUSE_S):
                self._write(client)

    def _write(self, client: httpx.Client) -> None:
        kind = self._random.random()
        if kind < 0.5:
            self._put(client)
        elif kind < 0.75:
            self._delete(client)
        else:
            self._post(client, wait_s=1 if kind < 0.9 else 0)

    def _put(self, client: httpx.Client) -> None:
        document_id, text = self._random.choice(self._ids), self._new_text()
        self._ledger.begin(document_id, text)
        answer = client.put(f"/documents/{document_id}", json={"text": text})
        self._note(answer, [(document_id, text)])

    def _delete(self, client: httpx.Client) -> None:
        document_id = self._random.choice(self._ids)
        before = self._ledger.view(document_id) if document_id in self._ledger.ids() else None
        self._ledger.begin(document_id, None)
        answer = client.delete(f"/documents/{document_id}")
        if answer.status_code == 404 and before is not None and before.is_certain and before.text is not None:
            self.faults.append(f"lost: {document_id} was not there to be deleted")
        self._note(answer, [(document_id, None)])

    def _post(self, client: httpx.Client, *, wait_s: int) -> None:
        documents = [
            {"id": each, "text": self._new_text()}
            for each in self._random.sample(self._ids, min(3, len(self._ids)))
        ]
        for document in documents:
            self._ledger.begin(document["id"], document["text"])
        answer = client.post(
            "/documents", json={"documents": documents}, headers={"Prefer": f"wait={wait_s}"}
        )
        if answer.status_code == 200:
            statuses = {outcome["status"] for outcome in answer.json()["outcomes"]}
            if not statuses <= {"created", "updated"}:
                self.faults.append(f"error: outcomes {statuses} of documents that are all new")
        self._note(answer, [(document["id"], document["text"]) for document in documents])

    def _note(self, answer: httpx.Response, written: Sequence[tuple[str, Text]]) -> None:
        is_gone = answer.status_code == 404 and written[0][1] is None
        if answer.is_success or is_gone:
            for document_id, text in written:
                self._ledger.acknowledge(document_id, text, is_visible=answer.status_code != 202)
        elif answer.status_code == 503:  # deliberate; nothing was acknowledged
            time.sleep(0.05)
        else:
            self.faults.append(f"error: {answer.status_code} {answer.text}")

    def _new_text(self) -> str:
        return make_text(revision_name(self._numbers()), self._random)


def counting() -> Callable[[], int]:
    """0, 1, 2, ... for whichever threads ask."""
    numbers = itertools.count()
    return lambda: next(numbers)
