"""From a document to its answer and back to nothing, over HTTP."""

import subprocess
import sys
from urllib.parse import quote

import httpx
import pytest

from tests.e2e.conftest import ROOT

ANSWERS = {
    "planets/mars": ("Mars", "Mars is called the red planet because iron oxide, rust, covers its surface."),
    "animals/bees": ("Bees", "Honey bees tell each other where to find flowers by dancing in the hive."),
    "history/printing": ("Printing", "Gutenberg printed books with movable metal type in Mainz around 1450."),
}
QUESTIONS = {
    "planets/mars": "why does that world look reddish?",
    "animals/bees": "how do insects communicate the location of food?",
    "history/printing": "who made mass production of texts possible in Germany?",
}
IMPORTS = """
import sys
from starlette.testclient import TestClient
from app.main import create_app
with TestClient(create_app()) as client:
    while client.get("/v1/models").status_code != 200:
        pass
    assert client.put("/v1/collections/imports").status_code == 201
    assert client.post("/v1/collections/imports/search/asymmetric", json={"query": "x"}).status_code == 200
    assert client.get("/docs").status_code == 200
    print(client.get("/v1/models").json()["models"][0]["runtime"])
print(*sorted({name.partition(".")[0] for name, module in sys.modules.items() if module is not None}))
"""


@pytest.fixture(scope="module")
def library(service: httpx.Client) -> httpx.Client:
    service.put("/v1/collections/library").raise_for_status()
    documents = [{"id": i, "title": title, "text": text} for i, (title, text) in ANSWERS.items()]
    answer = service.post(
        "/v1/collections/library/documents", json={"documents": documents}, headers={"Prefer": "wait=60"}
    )
    assert answer.json()["job"]["counts"] == {"created": 3}
    return service


@pytest.mark.parametrize(("document_id", "question"), QUESTIONS.items())
def test_a_question_in_other_words_finds_its_answer_first(
    library: httpx.Client, document_id: str, question: str
) -> None:
    body = library.post("/v1/collections/library/search/asymmetric", json={"query": question}).json()
    hit = body["hits"][0]
    assert hit["document_id"] == document_id
    passage = hit["passages"][0]
    assert ANSWERS[document_id][1][passage["start"] : passage["end"]] == passage["text"]
    assert body["query"]["max_tokens"] == 256


def test_a_written_document_is_found_and_a_deleted_one_is_gone(library: httpx.Client) -> None:
    url = f"/v1/collections/library/documents/{quote('sea/tides?', safe='')}"
    query = {"query": "what makes the ocean rise and fall twice a day?", "top_k": 1}

    def first() -> str:
        return str(
            library.post("/v1/collections/library/search/asymmetric", json=query).json()["hits"][0][
                "document_id"
            ]
        )

    assert (
        library.put(url, json={"text": "The pull of the moon causes high and low tide."}).status_code == 201
    )
    assert first() == "sea/tides?"
    assert library.delete(url).status_code == 204
    assert first() != "sea/tides?"
    assert library.get(url).status_code == 404


def test_a_long_text_is_compared_whole(library: httpx.Client) -> None:
    text = " ".join(["Beekeepers watch how the bees of a hive dance."] * 100)
    body = library.post("/v1/collections/library/search/symmetric", json={"text": text}).json()
    assert body["hits"][0]["document_id"] == "animals/bees"
    assert body["query"]["n_windows"] > 1
    assert not body["query"]["truncated"]


def test_a_query_beyond_the_limit_is_reported_or_refused(library: httpx.Client) -> None:
    query = "honey bees " * 300
    cut = library.post("/v1/collections/library/search/asymmetric", json={"query": query}).json()
    assert cut["query"] == {"n_tokens": 602, "max_tokens": 256, "truncated": True, "n_windows": 1}
    answer = library.post(
        "/v1/collections/library/search/asymmetric", json={"query": query, "truncate": False}
    )
    assert answer.status_code == 422
    assert (answer.json()["n_tokens"], answer.json()["max_tokens"]) == (602, 256)


def test_files_become_documents(library: httpx.Client) -> None:
    page = b"<html><head><title>Tea</title></head><body><p>Green tea is not fermented.</p></body></html>"
    files = [("files", ("tea.html", page, "text/html")), ("files", ("bad.pdf", b"%PDF-1.4 nothing", None))]
    answer = library.post("/v1/collections/library/files", files=files, headers={"Prefer": "wait=60"})
    outcomes = answer.json()["outcomes"]
    assert [each["status"] for each in outcomes] == ["created", "rejected"]
    stored = library.get(f"/v1/collections/library/documents/{outcomes[0]['document_id']}").json()
    assert "Green tea is not fermented." in stored["text"]


def test_events_follow_a_job_to_its_end(library: httpx.Client) -> None:
    documents = [{"id": f"series/{i}", "text": f"Part {i} of a series about lakes."} for i in range(500)]
    job = library.post("/v1/collections/library/documents", json={"documents": documents}).json()
    with library.stream("GET", f"/v1/jobs/{job['id']}/events") as answer:
        events = [line for line in answer.iter_lines() if line.startswith("event:")]
    assert events[-1] == "event: final"
    assert library.get(f"/v1/jobs/{job['id']}").json()["counts"] == {"created": 500}


def test_a_body_over_the_limit_is_refused_before_it_is_read(library: httpx.Client) -> None:
    def endless() -> object:
        while True:
            yield b" " * 2**20

    try:
        answer = library.post(
            "/v1/collections/library/documents",
            content=endless(),  # type: ignore[arg-type]
            headers={"Content-Type": "application/json"},
        )
    except (
        httpx.WriteError,
        httpx.ReadError,
    ):  # the service has answered and closed while we were still sending
        return
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_serving_process_imports_no_training_library(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    runtime, imported = done.stdout.strip().splitlines()
    assert runtime.startswith("openvino-int8")
    assert not set(imported.split()) & {"torch", "sentence_transformers", "transformers", "nncf", "indexer"}
