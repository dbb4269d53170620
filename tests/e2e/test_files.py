"""Uploads through service, worker and the reading process."""

import httpx
import pytest

from tests.indexer import made_files as made

WAIT = {"Prefer": "wait=60"}
ENCRYPTION = b"trailer <</Encrypt <</Filter/Standard/V 1/R 2/P -4/O<%b>/U<%b>>>/ID[<00><00>]" % (
    b"ab" * 32,
    b"cd" * 32,
)


@pytest.fixture(scope="module")
def path(service: httpx.Client) -> str:
    service.put("/v1/collections/files").raise_for_status()
    return "/v1/collections/files/files"


def test_a_pdf_with_a_password_is_rejected_and_a_good_one_beside_it_is_read(
    service: httpx.Client, path: str
) -> None:
    good = made.pdf(["Of lighthouses."])
    locked = good.replace(b"trailer <<", ENCRYPTION)
    answer = service.post(
        path, files=[("files", ("locked.pdf", locked)), ("files", ("good.pdf", good))], headers=WAIT
    )
    rejected, created = answer.json()["outcomes"]
    assert (rejected["status"], created["status"]) == ("rejected", "created")
    assert rejected["error"].endswith("it is protected by a password; save it without one")


def test_200_files_at_once_are_all_read(service: httpx.Client, path: str) -> None:
    files = [("files", (f"many/{i}.txt", f"Text number {i}.".encode())) for i in range(200)]
    answer = service.post(path, files=files, headers=WAIT)
    assert answer.status_code == 200
    assert [outcome["status"] for outcome in answer.json()["outcomes"]] == ["created"] * 200
    assert service.get("/v1/collections/files/documents/many%2F199.txt").json()["text"] == "Text number 199."


@pytest.mark.parametrize(
    "body",
    [
        b"no form at all",
        b"--x\r\n",
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nnever ended',
        b"--x\r\nContent-Disposition: form-data\r\n\r\nwithout a name\r\n--x--\r\n",
        b"--x\r\nno colon here\r\n\r\ntext\r\n--x--\r\n",
        b'--y\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nother\r\n--y--\r\n',
    ],
)
def test_a_malformed_form_is_refused_and_stores_nothing(
    service: httpx.Client, path: str, body: bytes
) -> None:
    n_before = len(service.get("/v1/jobs").json()["jobs"])
    answer = service.post(path, content=body, headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(service.get("/v1/jobs").json()["jobs"]) == n_before
