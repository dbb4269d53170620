"""Searches beside the writing, and what they may answer."""

import contextlib
import threading
from random import Random
from typing import Any, Literal

import httpx

from tests.crash.ledger import Ledger
from tests.crash.writing import COLLECTION, name_in

TOP_K = 10
Mode = Literal["lexical", "dense"]
MODES: tuple[Mode, ...] = ("lexical", "dense")


def search(client: httpx.Client, text: str, mode: Mode) -> httpx.Response:
    """For that very text: by words its name is enough, which no other revision has."""
    query = name_in(text) if mode == "lexical" else text
    return client.post(
        f"/v1/collections/{COLLECTION}/search/asymmetric",
        json={"query": query, "mode": mode, "top_k": TOP_K, "passages_per_hit": 3},
    )


def untrue_passages(hits: list[dict[str, Any]], ledger: Ledger) -> list[str]:
    """What is shown of documents that never had such a text there."""
    return [
        f"wrong: {hit['document_id']} does not contain {passage['text']!r} at {passage['start']}"
        for hit in hits
        for passage in hit["passages"]
        if not any(
            text[passage["start"] : passage["end"]] == passage["text"]
            for text in ledger.texts(hit["document_id"])
        )
    ]


class Searcher:
    """Looks for documents whose state is certain for as long as a search takes."""

    def __init__(self, url: str, ledger: Ledger, *, random: Random) -> None:
        self.faults: list[str] = []
        self.n_judged = 0
        self._url = url
        self._ledger = ledger
        self._random = random

    def run(self, end: threading.Event) -> None:
        with (
            contextlib.suppress(httpx.TransportError),
            httpx.Client(base_url=self._url, timeout=20) as client,
        ):
            while not end.wait(0.01):
                self._search(client)

    def _search(self, client: httpx.Client) -> None:
        ids = self._ledger.ids()
        document_id = self._random.choice(ids) if ids else None
        texts = [] if document_id is None else self._ledger.texts(document_id)
        if document_id is None or not texts:
            return
        mode = self._random.choice(MODES)
        before = self._ledger.view(document_id)
        answer = search(client, before.text or texts[-1], mode)
        if answer.status_code == 503:
            return
        if answer.status_code != 200:
            self.faults.append(f"error: {answer.status_code} {answer.text}")
            return
        hits = answer.json()["hits"]
        self.faults += untrue_passages(hits, self._ledger)
        if before.is_certain and self._ledger.view(document_id) == before:
            self.n_judged += 1
            is_found = any(hit["document_id"] == document_id for hit in hits)
            if is_found is not (before.text is not None):
                state = "was found after its deletion" if is_found else "was not found after it was written"
                self.faults.append(f"wrong: {document_id} {state}, {mode}")
