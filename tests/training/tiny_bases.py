"""Tiny random encoders of several architectures with a small vocabulary, and data sets of a few lines."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers
import torch
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

ARCHITECTURES = ("bert", "albert", "distilbert", "roberta")
WORDS = (
    "anna otto met saw in at oslo paris acme the a good bad fine awful day film meal cat dog sat ran where "
    "who did when what it was very quite . ? , yesterday today unbelievable walking"
)
MAX_TOKENS = 48
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}


def write_base(folder: Path, architecture: str) -> Path:
    """An encoder in Hugging Face layout: 3 layers, 32 dimensions, 48 tokens."""
    torch.manual_seed(3)
    tokenizer = _byte_pairs() if architecture == "roberta" else _word_pieces()
    tokenizer.model_max_length = MAX_TOKENS
    vocabulary = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    encoder: Any
    match architecture:
        case "bert":
            encoder = BertModel(BertConfig(**SIZES, **vocabulary, max_position_embeddings=MAX_TOKENS))
        case "albert":
            config = AlbertConfig(
                **SIZES, **vocabulary, embedding_size=16, max_position_embeddings=MAX_TOKENS
            )
            encoder = AlbertModel(config)
        case "distilbert":
            small = DistilBertConfig(
                dim=32, n_layers=3, n_heads=2, hidden_dim=64, max_position_embeddings=MAX_TOKENS, **vocabulary
            )
            encoder = DistilBertModel(small)
        case "roberta":
            positions = MAX_TOKENS + 1 + tokenizer.pad_token_id
            encoder = RobertaModel(
                RobertaConfig(**SIZES, **vocabulary, max_position_embeddings=positions, type_vocab_size=1)
            )
    encoder.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _word_pieces() -> PreTrainedTokenizerFast:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator([WORDS], trainers.WordPieceTrainer(vocab_size=160, special_tokens=special))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _byte_pairs() -> PreTrainedTokenizerFast:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([WORDS], trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        mask_token="<mask>",
        model_input_names=["input_ids", "attention_mask"],
    )


def write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_labelled(folder: Path) -> Path:
    """Things that are good or bad: 16 sentences to train on, 8 to validate, 8 to test."""
    rows = [
        {"text": f"the {what} was {how} {word}", "label": "good" if word in ("good", "fine") else "bad"}
        for what in ("film", "meal", "day", "cat")
        for how in ("very", "quite")
        for word in ("good", "fine", "bad", "awful")
    ]
    for split, part in (("train", rows[:16]), ("validation", rows[16:24]), ("test", rows[24:])):
        write_lines(folder / f"{split}.jsonl", part)
    return folder


def write_tagged(folder: Path) -> Path:
    """People who meet in places: the same sentences in every split."""
    sentences = [
        [(who, "B-PER"), ("met", "O"), (whom, "B-PER"), ("in", "O"), (where, "B-LOC"), (".", "O")]
        for who in ("Anna", "Otto")
        for whom in ("Otto", "Anna")
        for where in ("Oslo", "Paris")
    ]
    written = "\n".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in sentences)
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "validation", "test"):
        (folder / f"{split}.conll").write_text(written, encoding="utf-8")
    return folder


def squad(questions: Sequence[tuple[str, str, str, str | None]]) -> dict[str, Any]:
    """
    Args:
        questions: (id, question, context, answer), in SQuAD's layout; None is unanswerable.
    """
    paragraphs = [
        {
            "context": context,
            "qas": [
                {
                    "id": question_id,
                    "question": question,
                    "is_impossible": answer is None,
                    "answers": [{"text": answer, "answer_start": context.index(answer)}] if answer else [],
                }
            ],
        }
        for question_id, question, context, answer in questions
    ]
    return {"version": "2.0", "data": [{"title": "Made", "paragraphs": paragraphs}]}


def write_questions(folder: Path) -> Path:
    """Where people met; some contexts do not say it."""
    asked = [
        (f"{who}{where}", f"where did {who} sit ?", f"{who} met otto in {where} yesterday .", where)
        for who in ("anna", "otto", "acme")
        for where in ("oslo", "paris")
    ]
    unanswerable = [
        (f"{who}-no", f"where did {who} sit ?", f"{who} ran very good .", None) for who in ("anna", "otto")
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "validation", "test"):
        written = json.dumps(squad([*asked, *unanswerable]), indent=1)
        (folder / f"{split}.json").write_text(written, encoding="utf-8")
    return folder


def write_scored(folder: Path) -> Path:
    rows = [
        (f"the {a} sat", f"a {b} sat", 5.0 if a == b else 0.0)
        for a in ("cat", "dog", "film", "meal")
        for b in ("cat", "dog", "film", "meal")
    ]
    table = "sentence1\tsentence2\tscore\n" + "".join(f"{a}\t{b}\t{score}\n" for a, b, score in rows)
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "validation", "test"):
        (folder / f"{split}.tsv").write_text(table, encoding="utf-8")
    return folder


def write_positives(folder: Path) -> Path:
    rows = [
        {"anchor": f"who saw the {what} {when}", "positive": f"anna saw a {what} {when}"}
        for what in ("cat", "dog", "film", "meal")
        for when in ("today", "yesterday")
    ]
    for split in ("train", "validation", "test"):
        write_lines(folder / f"{split}.jsonl", rows)
    return folder


def write_corpus(folder: Path) -> Path:
    """Twelve documents of six sentences."""
    documents = [
        " ".join(
            f"{who.capitalize()} saw the {what} in {where} {when}."
            for what in ("cat", "dog", "film")
            for when in ("today", "yesterday")
        )
        for who in ("anna", "otto", "acme")
        for where in ("oslo", "paris", "it", "the day")
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.txt").write_text("\n\n".join(documents), encoding="utf-8")
    return folder
