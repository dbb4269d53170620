"""Masked words and pairs of segments: what the inputs are, and that networks learn from them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from app.errors import BadFile, InvalidInput
from indexer.training.pretraining.corpus import read_documents
from indexer.training.pretraining.masking import PAIR_LABELS, MaskingCollator
from indexer.training.pretraining.networks import from_scratch, losses
from indexer.training.pretraining.running import pretrain
from indexer.training.pretraining.segments import APART, TOGETHER, Segments, segments
from indexer.training.request import PretrainingRequest
from tests.training.tiny_bases import squad, write_corpus, write_lines

DOCUMENTS = st.lists(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=30), min_size=1, max_size=8),
    min_size=2,
    max_size=6,
)


def numbered(documents: list[list[list[int]]]) -> list[list[list[int]]]:
    """The same lengths, with tokens that tell document and place: document * 1000 + running number."""
    result = []
    for d, document in enumerate(documents):
        running = iter(range(1000))
        result.append([[d * 1000 + next(running) for _ in sentence] for sentence in document])
    return result


def made(documents: list[list[list[int]]], objective: Any, max_tokens: int = 40) -> list[Segments]:
    return segments(documents, objective=objective, max_tokens=max_tokens, random=np.random.default_rng(4))


def document_of(tokens: list[int]) -> set[int]:
    return {token // 1000 for token in tokens}


# Segments


@given(DOCUMENTS)
@settings(deadline=None)
def test_a_segment_stays_inside_its_document_and_a_pair_within_the_tokens(
    documents: list[list[list[int]]],
) -> None:
    for objective in ("mlm", "mlm+nsp", "mlm+sop"):
        for pair in made(numbered(documents), objective):
            assert 0 < len(pair.first) + len(pair.second) <= 40
            assert len(document_of(pair.first)) == 1
            assert len(document_of(pair.second)) <= 1


@given(DOCUMENTS)
@settings(deadline=None)
def test_a_next_sentence_follows_and_a_random_one_is_of_another_document(
    documents: list[list[list[int]]],
) -> None:
    for pair in made(numbered(documents), "mlm+nsp", max_tokens=300):
        if pair.label == TOGETHER:
            assert pair.second[0] == pair.first[-1] + 1
        else:
            assert document_of(pair.first) != document_of(pair.second)


@given(DOCUMENTS)
@settings(deadline=None)
def test_swapped_segments_follow_each_other_the_other_way_round(documents: list[list[list[int]]]) -> None:
    for pair in made(numbered(documents), "mlm+sop", max_tokens=300):
        first, second = (pair.first, pair.second) if pair.label == TOGETHER else (pair.second, pair.first)
        assert second[0] == first[-1] + 1


@given(DOCUMENTS)
@settings(deadline=None)
def test_single_segments_cover_every_token_that_fits(documents: list[list[list[int]]]) -> None:
    """Except the short ends of documents, and what is beyond the limit in one sentence."""
    found = [token for each in made(numbered(documents), "mlm", max_tokens=300) for token in each.first]
    assert len(found) == len(set(found))
    long = [d for d in numbered(documents) if sum(map(len, d)) >= 8]
    assert {token for document in long for sentence in document for token in sentence} >= set(found)
    assert all(document_of([d[0][0]]) <= document_of(found) for d in long)


@pytest.mark.parametrize("objective", ["mlm+nsp", "mlm+sop"])
def test_about_half_of_the_pairs_are_apart(objective: str) -> None:
    documents = numbered([[[0] * 10 for _ in range(8)] for _ in range(90)])
    labels = [pair.label for pair in made(documents, objective)]
    assert 0.4 < labels.count(APART) / len(labels) < 0.7


def test_a_single_document_has_no_random_second_segment() -> None:
    with pytest.raises(InvalidInput, match="two documents or more"):
        made([[[1] * 10, [2] * 10]], "mlm+nsp")


# Masking


@pytest.fixture(scope="module")
def tokenizer(bases: dict[str, Path]) -> PreTrainedTokenizerBase:
    loaded: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(bases["bert"])
    return loaded


def batch_of(tokenizer: PreTrainedTokenizerBase, text: str, n: int, *, whole_words: bool) -> dict[str, Any]:
    ids = tokenizer(text)["input_ids"]
    special = [int(i in tokenizer.all_special_ids) for i in ids]
    rows = [{"input_ids": ids, "special_tokens_mask": special, PAIR_LABELS: 0} for _ in range(n)]
    return dict(MaskingCollator(tokenizer, whole_words=whole_words, max_tokens=48, seed=5)(rows))


def test_fifteen_percent_are_predicted_of_which_most_are_hidden(tokenizer: PreTrainedTokenizerBase) -> None:
    """80 % [MASK], 10 % random, 10 % as they were; of 60,000 tokens the shares are within a percent."""
    text = "anna met otto in oslo ."
    batch = batch_of(tokenizer, text, 10_000, whole_words=False)
    original = torch.tensor(tokenizer(text)["input_ids"])
    labels = batch["labels"][:, : len(original)]
    ids = batch["input_ids"][:, : len(original)]
    chosen = labels != -100
    assert abs(chosen[:, 1:-1].float().mean() - 0.15) < 0.01
    assert torch.equal(labels[chosen], original.expand_as(labels)[chosen])
    hidden = ids[chosen] == tokenizer.mask_token_id
    same = ids[chosen] == original.expand_as(ids)[chosen]
    assert abs(hidden.float().mean() - 0.8) < 0.02
    assert abs(same.float().mean() - 0.1) < 0.02
    assert torch.equal(ids[~chosen], original.expand_as(ids)[~chosen])


def test_special_tokens_and_padding_are_never_predicted(tokenizer: PreTrainedTokenizerBase) -> None:
    batch = batch_of(tokenizer, "anna ran", 500, whole_words=False)
    assert batch["input_ids"].shape[1] == 16
    assert (batch["labels"][:, 0] == -100).all()
    assert (batch["labels"][:, 3:] == -100).all()


def test_whole_words_are_predicted_with_all_of_their_pieces(tokenizer: PreTrainedTokenizerBase) -> None:
    text = "annaotto saw annaotto ran"
    pieces = tokenizer.tokenize(text)
    assert any(piece.startswith("##") for piece in pieces)
    begins = [i for i, piece in enumerate(pieces) if not piece.startswith("##")]
    chosen = (batch_of(tokenizer, text, 3000, whole_words=True)["labels"] != -100)[:, 1 : len(pieces) + 1]
    for begin, end in zip(begins, [*begins[1:], len(pieces)], strict=True):
        assert (chosen[:, begin:end].all(dim=1) == chosen[:, begin:end].any(dim=1)).all()
        assert 0.1 < chosen[:, begin].float().mean() < 0.2


# Networks


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_the_loss_is_that_of_the_whole_network(family: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    """Scoring words at the masked places alone changes nothing; transformers scores every place."""
    network: Any = from_scratch(
        family, vocabulary=len(tokenizer), layers=2, heads=2, dimensions=32, embedding_dimensions=16
    )
    network.eval()
    batch = batch_of(tokenizer, "anna met otto in oslo .", 8, whole_words=False)
    with torch.inference_mode():
        found = losses(network, batch, with_pairs=True)
        inputs = {k: v for k, v in batch.items() if k != PAIR_LABELS}
        pair = {"bert": "next_sentence_label", "albert": "sentence_order_label"}[family]
        expected = network(**inputs, **{pair: batch[PAIR_LABELS]}).loss
    assert torch.allclose(found.total, expected, atol=1e-5)


def test_albert_has_fewer_parameters_than_bert_of_the_same_width() -> None:
    """Shared layers: 12 count once. Factorised embeddings: 30,000 x 128 + 128 x 384 for 30,000 x 384."""
    sizes = {
        family: sum(
            p.numel()
            for p in from_scratch(
                family, vocabulary=30_000, layers=12, heads=12, dimensions=384, embedding_dimensions=128
            ).parameters()
        )
        for family in ("bert", "albert")
    }
    assert sizes["bert"] > 5 * sizes["albert"]


# The command's whole


def request(base: Path, corpus: Path, output: Path, **options: Any) -> PretrainingRequest:
    given: dict[str, Any] = {
        "objective": "mlm+nsp",
        "base": str(base),
        "paths": [corpus],
        "output": output,
        "max_steps": 3,
        "held_out": 0.2,
        "batch_tokens": 512,
        "max_tokens": 40,
        "learning_rate": 3e-3,
        "precision": "fp32",
    }
    return PretrainingRequest(**{**given, **options})


@pytest.mark.parametrize(
    ("objective", "architecture", "config"),
    [
        ("mlm+nsp", "bert", None),
        ("mlm+sop", "albert", None),
        ("mlm+sop", "bert", None),
        ("mlm", "roberta", None),
        ("mlm", "distilbert", None),
        ("mlm+nsp", "bert", "bert"),
        ("mlm+sop", "bert", "albert"),
    ],
)
def test_objectives_train_from_scratch_and_go_on(
    bases: dict[str, Path], tmp_path: Path, objective: str, architecture: str, config: str | None
) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    options = {"objective": objective, "config": config, "layers": 2, "heads": 2, "dimensions": 32}
    trained = pretrain(request(bases[architecture], corpus, tmp_path / "out", **options))
    result = json.loads((tmp_path / "out" / "results.json").read_text())
    measured = {"mlm": set(), "mlm+nsp": {"nsp_accuracy"}, "mlm+sop": {"sop_accuracy"}}[objective]
    assert set(result["before"]) == set(result["validation"])
    assert set(result["validation"]) == {"mlm_loss", "perplexity", "mlm_accuracy"} | measured
    assert trained.result.n_steps == 3


def test_pretraining_lowers_the_held_out_loss(bases: dict[str, Path], tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    result = pretrain(
        request(bases["bert"], corpus, tmp_path / "out", max_steps=150, whole_words=True)
    ).result
    assert result.validation["mlm_loss"] < 0.8 * result.before["mlm_loss"]
    assert result.validation["mlm_accuracy"] > result.before["mlm_accuracy"]


def test_an_architecture_without_a_head_for_pairs_is_refused(bases: dict[str, Path], tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    with pytest.raises(InvalidInput, match=r"a roberta has no head for pairs .* the objective mlm works"):
        pretrain(request(bases["roberta"], corpus, tmp_path / "out"))


# Corpus


def test_documents_are_read_from_every_kind_of_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One here. Two!\n\nThree.\n", encoding="utf-8")
    write_lines(tmp_path / "b.jsonl", [{"text": "Four. Five."}])
    asked = squad([("q", "who ?", "Six is anna.", "anna")])
    (tmp_path / "c.json").write_text(json.dumps(asked), encoding="utf-8")
    assert read_documents([tmp_path]) == [
        ["One here.", "Two!"],
        ["Three."],
        ["Four.", "Five."],
        ["Six is anna."],
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", " \n", "there is no text"),
        ("a.jsonl", '{"text": "a"}\n{"txt": "b"}\n', r"a\.jsonl, line 2: 'text' is missing"),
        ("a.json", '{\n"data": [', r"a\.json, line 2: is no JSON"),
        ("a.json", '{"data": [{}]}', r"a\.json, line 1: not in SQuAD's layout"),
        ("a.pdf", "x", r"ends in '\.pdf'; a corpus is made of"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_refused(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(BadFile, match=message):
        read_documents([tmp_path / name])


def test_a_corpus_needs_documents_on_both_sides(bases: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Anna ran.", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"the corpus has 1 document\(s\), of which 1 would be held out"):
        pretrain(request(bases["bert"], tmp_path / "a.txt", tmp_path / "out"))
    with pytest.raises(InvalidInput, match="--corpus is missing"):
        read_documents([])
