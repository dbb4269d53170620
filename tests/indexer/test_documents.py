import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import Document, SplitterSettings
from app.domain.contents import content_hash
from app.errors import BadDocument, BlankText, InvalidInput
from indexer.documents import describe, id_if_any, parse_document, parse_id

MAX_CHARS = 1_000
SPLITTER = SplitterSettings()

whole_text = st.text(st.characters(exclude_categories=["Cs"]))


def parse(**fields: Any) -> Document:
    return parse_document(
        json.dumps({"id": "a", "text": "some text", **fields}).encode(), max_chars=MAX_CHARS
    )


def refusal(**fields: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        parse(**fields)
    return describe(caught.value)


def digest(document: Document, splitter: SplitterSettings = SPLITTER, fingerprint: str = "model") -> bytes:
    return content_hash(document, splitter, fingerprint=fingerprint)


@given(id=whole_text.filter(lambda s: 1 <= len(s.encode()) <= 512), text=whole_text, title=whole_text)
def test_any_id_text_and_title_of_whole_characters_arrive_unchanged(id: str, text: str, title: str) -> None:
    document = parse(id=id, text=f"x{text}", title=title)
    assert (document.id, document.text, document.title) == (id, f"x{text}", title)


@pytest.mark.parametrize(
    "text",
    [
        "a\0b",
        "\u202edcba\u202c",
        "a\u200db",
        "a\r\nb",
        "a\tb",
        "\ufeffa",
        "e\u0301",
        "w" * 1_000,
        "\U0001f980",
    ],
    ids=["nul", "bidi", "joiner", "crlf", "tab", "bom", "combining", "one word", "emoji"],
)
def test_odd_but_whole_text_is_taken_unchanged(text: str) -> None:
    assert parse(text=text).text == text


def test_an_id_may_have_512_bytes_and_no_more() -> None:
    assert parse(id="é" * 256).id == "é" * 256
    assert refusal(id="é" * 256 + "a") == "id: must be a string of 1 to 512 bytes in UTF-8, has 513"


@pytest.mark.parametrize("document_id", ["", None, 7, ["a"]])
def test_an_id_that_is_no_string_or_empty_is_refused(document_id: object) -> None:
    assert refusal(id=document_id).startswith("id: must be a string of 1 to 512 bytes in UTF-8")


@pytest.mark.parametrize("document_id", ["../../etc/passwd", "a/b c", '"', "..", "\U0001f980", "a\0b", " "])
def test_an_id_is_data_whatever_it_looks_like(document_id: str) -> None:
    assert parse(id=document_id).id == document_id


@pytest.mark.parametrize("text", ["", " ", "\n\t\u2003"])
def test_blank_text_is_refused(text: str) -> None:
    with pytest.raises(BlankText, match="empty or only white space"):
        parse(text=text)


def test_text_beyond_the_limit_is_refused_with_both_numbers() -> None:
    assert parse(text="x" * 1_000).text == "x" * 1_000
    assert refusal(text="x" * 1_001) == "text: has 1001 characters; at most 1000 are allowed"


def test_half_a_surrogate_pair_is_refused_with_its_place() -> None:
    expected = "has half a surrogate pair at character 2; whole Unicode characters are allowed"
    assert refusal(text="ab\ud800c") == f"text: {expected}"
    assert refusal(id="ab\udfff") == f"id: {expected}"
    assert refusal(title="ab\ud800") == f"title: {expected}"
    assert refusal(metadata={"k": "ab\ud800"}) == f"metadata.k: {expected}"


def test_an_unknown_field_is_refused_and_the_known_ones_are_named() -> None:
    assert refusal(body="x") == "body: unknown field 'body'; allowed are id, text, title, metadata"


def test_a_title_beyond_the_limit_or_of_another_type_is_refused() -> None:
    assert refusal(title="x" * 1_001) == "title: has 1001 characters; at most 1000 are allowed"
    assert refusal(title=3) == "title: must be a string or null, is a number"


def test_metadata_holds_scalars_and_lists_of_scalars() -> None:
    metadata = {"year": 1999, "score": 0.5, "open": True, "note": None, "tags": ["a", 1, None], "none": []}
    assert parse(metadata=metadata).metadata == metadata
    assert parse(metadata=None).metadata == {}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([], "metadata: must be an object, is a list"),
        ({"a": {"b": 1}}, "metadata.a: is an object; a string, number, boolean, null or a list"),
        ({"a": [["b"]]}, "metadata.a.0: is a list; a string, number, boolean, null or a list"),
        ({"a": 2**63}, "metadata.a: is beyond 64 bits"),
        ({"": 1}, "metadata: a name has 0 bytes; 1 to 128 are allowed"),
        ({"n" * 129: 1}, "metadata: a name has 129 bytes; 1 to 128 are allowed"),
        ({str(i): i for i in range(101)}, "metadata: has 101 fields; at most 100 are allowed"),
        ({"a": "x" * 32_768}, "metadata: has 32769 bytes of names and values; at most 32768 are allowed"),
    ],
)
def test_metadata_outside_what_is_allowed_is_refused(metadata: object, message: str) -> None:
    assert refusal(metadata=metadata).startswith(message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON: Expecting value at line 1, column 1"),
        (b"[]", "a document is a JSON object, this is a list"),
        (b"7", "a document is a JSON object, this is a number"),
        (b"\xff\xfe\xfa", "the JSON is not UTF-8"),
        (b'{"id": NaN}', "NaN is not JSON; finite numbers are allowed"),
        (b'{"id": -Infinity}', "-Infinity is not JSON; finite numbers are allowed"),
        (b'{"metadata": {"a": 1e999}, "id": "a", "text": "b"}', "metadata.a: is not finite"),
        (b'{"id": "a", "id": "b"}', "id: the field 'id' is there twice"),
        (b'{"metadata": {"k": 1, "k": 2}}', "k: the field 'k' is there twice"),
        (b"[" * 100_000, "the JSON is nested too deeply; metadata is flat"),
        (b'{"metadata": {"a": ' + b"9" * 5_000 + b"}}", "the JSON has a number that is too long"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_what_is_not_one_json_object_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(BadDocument) as caught:
        parse_document(body, max_chars=MAX_CHARS)
    assert describe(caught.value).startswith(message)


def test_the_id_of_a_refused_document_is_found_where_it_is_one() -> None:
    assert id_if_any(b'{"id": "a", "text": ""}') == "a"
    assert id_if_any(b'{"id": 7}') is None
    assert id_if_any(b"nonsense") is None


def test_an_id_to_delete_is_a_json_string() -> None:
    assert parse_id(b'"a/b"') == "a/b"
    with pytest.raises(BadDocument, match="must be a string"):
        parse_id(b'{"id": "a"}')


def test_the_hash_changes_with_everything_that_decides_passages_and_vectors() -> None:
    document = Document("a", "text", title="title", page_starts=(0, 2))
    hashes = {
        digest(document),
        digest(Document("a", "other", title="title", page_starts=(0, 2))),
        digest(Document("a", "text", title="other", page_starts=(0, 2))),
        digest(Document("a", "text", title=None, page_starts=(0, 2))),
        digest(Document("a", "text", title="", page_starts=(0, 2))),
        digest(Document("a", "text", title="title", page_starts=(0, 3))),
        digest(document, SplitterSettings(max_tokens=128)),
        digest(document, SplitterSettings(overlap_tokens=0)),
        digest(document, SplitterSettings(version=99)),
        digest(document, fingerprint="other"),
    }
    assert len(hashes) == 10


def test_the_hash_ignores_id_and_metadata() -> None:
    assert digest(Document("a", "text")) == digest(Document("b", "text", metadata={"k": 1}))


def test_moving_a_character_from_title_to_text_changes_the_hash() -> None:
    assert digest(Document("a", "bc", title="a")) != digest(Document("a", "c", title="ab"))
