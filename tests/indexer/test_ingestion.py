import dataclasses
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain import Document, JobInput, JobKind, JobState, Outcome, OutcomeStatus, SplitterSettings
from app.engine.document_vectors import document_vector
from app.engine.embedder import Embeddings
from app.errors import BadVector, DocumentNotFound, FingerprintMismatch
from indexer.encoding import DocumentEncoder
from indexer.ingestion import one_ahead
from indexer.inputs import Part
from indexer.planning import CHUNK_CHARS, chunks
from tests.indexer.stand_ins import Bench, packaged_tokenizer, wait_until

CREATED, UPDATED, UNCHANGED = OutcomeStatus.CREATED, OutcomeStatus.UPDATED, OutcomeStatus.UNCHANGED
DELETED, NOT_FOUND, REJECTED = OutcomeStatus.DELETED, OutcomeStatus.NOT_FOUND, OutcomeStatus.REJECTED


def outcomes_of(bench: Bench, *documents: Mapping[str, object]) -> Sequence[Outcome]:
    job = bench.submit_documents(*documents)
    bench.process_next()
    return bench.rows.outcomes(job.id)


def statuses_of(bench: Bench, *documents: Mapping[str, object]) -> list[OutcomeStatus]:
    return [outcome.status for outcome in outcomes_of(bench, *documents)]


def test_a_new_document_is_created_with_its_fields(bench: Bench) -> None:
    [outcome] = outcomes_of(
        bench, {"id": "a", "text": "Water boils.", "title": "Physics", "metadata": {"year": 1}}
    )
    assert (outcome.status, outcome.document_id, outcome.n_passages) == (CREATED, "a", 1)
    assert bench.stored("a") == Document("a", "Water boils.", title="Physics", metadata={"year": 1})


def test_tokens_are_counted_without_special_tokens_and_title(bench: Bench) -> None:
    [outcome] = outcomes_of(bench, {"id": "a", "text": "Water boils.", "title": "Physics"})
    assert outcome.n_tokens == 4  # water, boil, ##s, .


def test_changed_text_is_updated_and_the_old_text_gone(bench: Bench) -> None:
    outcomes_of(bench, {"id": "a", "text": "old"})
    assert statuses_of(bench, {"id": "a", "text": "new"}) == [UPDATED]
    assert bench.stored("a").text == "new"


def test_a_changed_title_alone_is_encoded_again(bench: Bench) -> None:
    outcomes_of(bench, {"id": "a", "text": "text"})
    assert statuses_of(bench, {"id": "a", "text": "text", "title": "title"}) == [UPDATED]
    assert bench.embedder.n_texts == 2


def test_unchanged_documents_cost_the_model_nothing(bench: Bench) -> None:
    document: dict[str, object] = {"id": "a", "text": "text", "metadata": {"x": 1, "y": [1, 2]}}
    outcomes_of(bench, document)
    key = bench.rows.document(bench.collection.key, "a").key
    n_texts = bench.embedder.n_texts
    [outcome] = outcomes_of(bench, {**document, "metadata": {"y": [1, 2], "x": 1}})
    assert (outcome.status, outcome.n_passages) == (UNCHANGED, 1)
    assert bench.embedder.n_texts == n_texts
    assert bench.rows.document(bench.collection.key, "a").key == key


@pytest.mark.parametrize("value", [2, True, 1.0, "1", None, [1]])
def test_changed_metadata_is_updated_without_the_model(bench: Bench, value: object) -> None:
    outcomes_of(bench, {"id": "a", "text": "text", "metadata": {"x": 1}})
    n_texts = bench.embedder.n_texts
    assert statuses_of(bench, {"id": "a", "text": "text", "metadata": {"x": value}}) == [UPDATED]
    assert bench.embedder.n_texts == n_texts
    assert repr(bench.stored("a").metadata["x"]) == repr(value)


def test_the_same_text_under_another_id_is_another_document(bench: Bench) -> None:
    assert statuses_of(bench, {"id": "a", "text": "same"}, {"id": "b", "text": "same"}) == [CREATED, CREATED]


def test_a_bad_document_is_rejected_and_the_others_succeed(bench: Bench) -> None:
    outcomes = outcomes_of(
        bench, {"id": "a", "text": "good"}, {"id": "b", "text": " "}, {"id": "c", "text": "good"}
    )
    assert [o.status for o in outcomes] == [CREATED, REJECTED, CREATED]
    assert (outcomes[1].document_id, outcomes[1].error) == ("b", "text: is empty or only white space")


def test_a_rejected_update_leaves_the_document_as_it_was(bench: Bench) -> None:
    outcomes_of(bench, {"id": "a", "text": "old"})
    outcomes_of(bench, {"id": "a", "text": ""})
    assert bench.stored("a").text == "old"


def test_of_several_inputs_with_one_id_the_last_wins_and_each_has_its_outcome(bench: Bench) -> None:
    statuses = statuses_of(
        bench,
        {"id": "a", "text": "first"},
        {"id": "b", "text": "other"},
        {"id": "a", "text": "second"},
        {"id": "a", "text": "second"},
        {"id": "a", "text": "second", "metadata": {"k": 1}},
    )
    assert statuses == [CREATED, CREATED, UPDATED, UNCHANGED, UPDATED]
    assert bench.stored("a") == Document("a", "second", metadata={"k": 1})


def test_deleting_says_what_was_there(bench: Bench) -> None:
    outcomes_of(bench, {"id": "a", "text": "text"}, {"id": "b", "text": "text"})
    job = bench.submit_deletes("a", "nowhere", "a")
    bench.process_next()
    assert [o.status for o in bench.rows.outcomes(job.id)] == [DELETED, NOT_FOUND, NOT_FOUND]
    with pytest.raises(DocumentNotFound):
        bench.stored("a")
    assert bench.stored("b").text == "text"


def test_a_delete_of_something_that_is_no_id_is_rejected(bench: Bench) -> None:
    job = bench.submit(JobKind.DELETE, [b'"a"', b"7"])
    bench.process_next()
    assert [o.status for o in bench.rows.outcomes(job.id)] == [NOT_FOUND, REJECTED]


def test_a_deleted_document_that_comes_again_is_created(bench: Bench) -> None:
    outcomes_of(bench, {"id": "a", "text": "text"})
    bench.submit_deletes("a")
    bench.process_next()
    assert statuses_of(bench, {"id": "a", "text": "text"}) == [CREATED]


def test_a_document_longer_than_the_model_becomes_passages_that_quote_it(bench: Bench) -> None:
    text = " ".join(f"Sentence number {i} speaks of water." for i in range(200))
    [outcome] = outcomes_of(bench, {"id": "a", "text": text})
    assert outcome.n_passages > 1
    stored = bench.rows.document(bench.collection.key, "a")
    assert stored.n_passages == outcome.n_passages
    keys = [k for block in bench.rows.vectors_after(bench.collection.key, "passages", 0) for k in block.keys]
    passages = bench.rows.passages_by_key([int(k) for k in keys])
    assert all(text[p.passage.start : p.passage.end] == p.text for p in passages.values())
    assert all(p.passage.n_tokens <= 256 for p in passages.values())


def test_vectors_belong_to_their_passages_although_encoding_goes_by_length(bench: Bench) -> None:
    texts = {"short": "water", "long": "fire " * 150 + "earth", "middle": "wind and waves"}
    outcomes_of(bench, *({"id": i, "text": t} for i, t in texts.items()))
    [block] = bench.rows.vectors_after(bench.collection.key, "passages", 0)
    passages = bench.rows.passages_by_key([int(k) for k in block.keys])
    for key, vector in zip(block.keys, block.vectors, strict=True):
        expected = bench.embedder.encode_documents([passages[int(key)].text]).vectors[0]
        assert vector.astype(np.float32) @ expected == pytest.approx(1, abs=1e-3)


def test_the_vector_of_a_document_is_the_mean_of_its_passages_weighted_by_length() -> None:
    vectors = np.eye(3, dtype=np.float32)[:2]
    assert document_vector(vectors, np.array([30, 40])) == pytest.approx(np.array([0.6, 0.8, 0.0]))


def test_opposite_passages_still_give_a_vector_of_length_1() -> None:
    vectors = np.array([[1, 0], [-1, 0]], dtype=np.float32)
    assert document_vector(vectors, np.array([5, 5])).tolist() == [1, 0]


def test_text_that_the_model_cannot_read_is_stored_with_a_warning(bench: Bench) -> None:
    [outcome] = outcomes_of(bench, {"id": "a", "text": "すべての人間は、生まれながらにして自由であり" * 5})
    assert outcome.status is CREATED
    assert "use a model that was made for its language" in outcome.warnings[0]
    assert bench.rows.collection_stats(bench.collection.key).unknown_share > 0.05


def test_a_text_that_the_model_refuses_is_rejected_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = bench.embedder.encode_documents

    def refuse_fire(texts: Sequence[str], **options: object) -> object:
        if "fire" in texts:
            raise BadVector("the vector is not finite", where=("texts", texts.index("fire")))
        return encode(texts)

    monkeypatch.setattr(bench.embedder, "encode_documents", refuse_fire)
    outcomes = outcomes_of(bench, *({"id": w, "text": w} for w in ["water", "fire", "wind"]))
    assert [o.status for o in outcomes] == [CREATED, REJECTED, CREATED]
    assert outcomes[1].error == "text: the vector is not finite"


def test_a_collection_of_another_model_is_refused_with_both_named(bench: Bench) -> None:
    bench.collection = bench.create_collection("other", fingerprint="another-model")
    bench.submit_documents({"id": "a", "text": "text"})
    with pytest.raises(FingerprintMismatch) as caught:
        bench.process_next()
    message = str(caught.value)
    assert "another-mode" in message
    assert "word-hash-1" in message
    assert "re-index it" in message


def test_a_collection_of_another_splitter_version_is_refused(bench: Bench) -> None:
    bench.collection = bench.create_collection("other", splitter=SplitterSettings(version=99))
    bench.submit_documents({"id": "a", "text": "text"})
    with pytest.raises(FingerprintMismatch, match="splitter version 99, the worker has version 1"):
        bench.process_next()


def test_documents_of_another_model_can_still_be_deleted(bench: Bench) -> None:
    bench.collection = bench.create_collection("other", fingerprint="another-model")
    job = bench.submit_deletes("a")
    bench.process_next()
    assert bench.rows.job(job.id).state is JobState.SUCCEEDED


def test_a_file_becomes_a_document_named_after_it(bench: Bench) -> None:
    job = bench.submit(JobKind.FILES, [b"Water boils."], names=["notes/water.txt"])
    bench.process_next()
    [outcome] = bench.rows.outcomes(job.id)
    assert (outcome.status, outcome.document_id, outcome.n_documents) == (CREATED, "notes/water.txt", 1)
    assert bench.stored("notes/water.txt").text == "Water boils."


def test_a_damaged_file_is_rejected_and_the_others_succeed(bench: Bench) -> None:
    job = bench.submit(JobKind.FILES, [b"\xff\xfe\xfa%PDF", b"good"], names=["bad.pdf", "good.txt"])
    bench.process_next()
    bad, good = bench.rows.outcomes(job.id)
    assert (bad.status, bad.document_id, bad.n_documents) == (REJECTED, "bad.pdf", 0)
    assert good.status is CREATED


parts = st.lists(
    st.builds(
        lambda document_id, n_chars: (document_id, n_chars),
        st.sampled_from("abcdefgh"),
        st.sampled_from([1, 10, CHUNK_CHARS // 2, CHUNK_CHARS, CHUNK_CHARS + 1]),
    )
)


@given(parts, st.integers(0, 10))
def test_chunks_keep_the_order_hold_an_id_once_and_stay_within_their_size(
    drawn: list[tuple[str, int]], one_by_one_until: int
) -> None:
    given_parts = [Part(i, d, Document(d, "x" * n)) for i, (d, n) in enumerate(drawn)]
    cut = list(chunks(given_parts, one_by_one_until=one_by_one_until))
    assert [part for chunk in cut for part in chunk] == given_parts
    for chunk in cut:
        assert len({part.document_id for part in chunk}) == len(chunk)
        assert len(chunk) == 1 or sum(part.n_chars for part in chunk) <= CHUNK_CHARS
        assert len(chunk) == 1 or chunk[0].ordinal >= one_by_one_until


def test_a_suspect_input_is_given_out_before_the_next_is_read() -> None:
    def reading() -> object:
        yield Part(0, "a", Document("a", "x"))
        raise AssertionError("read on")

    assert next(chunks(reading(), one_by_one_until=10))[0].document_id == "a"  # type: ignore[arg-type]


def test_bodies_are_json_of_any_unicode(bench: Bench) -> None:
    text = "crab \U0001f980 \0 \r\n e\u0301"
    job = bench.submit(JobKind.DOCUMENTS, [json.dumps({"id": "\U0001f980/..", "text": text}).encode()])
    bench.process_next()
    assert [o.status for o in bench.rows.outcomes(job.id)] == [CREATED]
    assert bench.stored("\U0001f980/..").text == text


def read_lines(source: JobInput) -> list[Document]:
    """One document per line."""
    return [Document(f"{source.name}/{i}", line) for i, line in enumerate(source.body.decode().split("\n"))]


def test_a_file_of_many_documents_has_one_outcome_that_sums_them(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file fills three chunks; the first outcome after it belongs to the next file."""
    monkeypatch.setattr("indexer.planning.CHUNK_PARTS", 2)
    bench.read_files_with(read_lines)
    job = bench.submit(JobKind.FILES, [b"one\ntwo\nthree\n \nfive", b"six"], names=["table.csv", "b.csv"])
    bench.process_next()
    table, b = bench.rows.outcomes(job.id)
    assert (table.status, table.document_id, table.n_documents, table.n_passages) == (
        CREATED,
        "table.csv",
        4,
        4,
    )
    assert table.warnings == (
        "1 of 5 documents of the file were rejected",
        "table.csv/3: text: is empty or only white space",
    )
    assert (b.document_id, b.n_documents) == ("b.csv/0", 1)
    assert bench.stored("table.csv/4").text == "five"


def test_a_file_that_changed_in_one_document_encodes_only_that(bench: Bench) -> None:
    bench.read_files_with(read_lines)
    bench.submit(JobKind.FILES, [b"one\ntwo\nthree"], names=["table.csv"])
    bench.process_next()
    n_texts = bench.embedder.n_texts
    job = bench.submit(JobKind.FILES, [b"one\nzwei\nthree"], names=["table.csv"])
    bench.process_next()
    assert [o.status for o in bench.rows.outcomes(job.id)] == [UPDATED]
    assert bench.embedder.n_texts == n_texts + 1


def test_the_document_prompt_of_a_model_takes_its_room_from_the_passages(bench: Bench) -> None:
    document = Document("a", "water " * 2_000)
    prompted = DocumentEncoder(bench.embedder, packaged_tokenizer(), document_prompt="passage: " * 50)
    longest = []
    for encoder in (bench.encoder, prompted):
        passages = encoder.split(document, SplitterSettings(max_tokens=256)).passages
        longest.append(max(passage.n_tokens for passage in passages))
    assert longest == [256, 156]  # the prompt has 100 tokens


def test_a_passage_that_the_model_cuts_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = bench.embedder.encode_documents

    def cutting(texts: Sequence[str], **options: object) -> Embeddings:
        return dataclasses.replace(encode(texts), truncated=np.ones(len(texts), dtype=np.bool_))

    monkeypatch.setattr(bench.embedder, "encode_documents", cutting)
    [outcome] = outcomes_of(bench, {"id": "a", "text": "text"})
    assert outcome.warnings == (
        "the ends of 1 passages are beyond what the model takes and do not count in the search",
    )


def test_an_id_in_neighbouring_chunks_is_decided_by_what_the_first_stored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second chunk is planned while the first is encoded, and again when it is stored."""
    monkeypatch.setattr("indexer.planning.CHUNK_PARTS", 1)
    statuses = statuses_of(
        bench,
        {"id": "a", "text": "one"},
        {"id": "a", "text": "one"},
        {"id": "a", "text": "two"},
        {"id": "b", "text": "one"},
        {"id": "a", "text": "two", "metadata": {"k": 1}},
    )
    assert statuses == [CREATED, UNCHANGED, UPDATED, CREATED, UPDATED]
    assert bench.stored("a") == Document("a", "two", metadata={"k": 1})


documents = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["one", "two", ""]), st.sampled_from([1, 2])),
    max_size=8,
)


def stored_documents(bench: Bench) -> list[Document]:
    key = bench.collection.key
    return [bench.rows.document(key, head.id).document for head in bench.rows.documents(key)]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(documents, st.integers(1, 3))
def test_any_batch_has_the_effect_and_outcomes_of_its_documents_sent_one_by_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, drawn: list[tuple[str, str, int]], chunk_parts: int
) -> None:
    monkeypatch.setattr("indexer.planning.CHUNK_PARTS", chunk_parts)
    sent = [{"id": i, "text": text, "metadata": {"k": k}} for i, text, k in drawn]
    bench.collection = bench.create_collection(f"together {uuid.uuid4()}")
    together = statuses_of(bench, *sent)
    all_together = stored_documents(bench)
    bench.collection = bench.create_collection(f"one by one {uuid.uuid4()}")
    one_by_one = [statuses_of(bench, document)[0] for document in sent]
    all_one_by_one = stored_documents(bench)
    assert together == one_by_one
    assert all_together == all_one_by_one


def test_one_ahead_gives_the_same_values_and_is_one_ahead() -> None:
    made = []

    def making() -> Iterator[int]:
        for i in range(4):
            made.append(i)
            yield i

    values = one_ahead(making())
    assert next(values) == 0
    wait_until(lambda: made == [0, 1])
    assert list(values) == [1, 2, 3]


def test_one_ahead_passes_on_a_failure() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise BadVector("no")

    with pytest.raises(BadVector):
        list(one_ahead(failing()))
