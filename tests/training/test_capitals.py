"""Tagging by capitals that the base's vocabulary does not know."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from app.engine.head_files import find_head
from app.errors import InvalidInput
from app.settings import Settings
from indexer.training.running import MODEL, train
from tests.training.asking import request


def write_names(folder: Path) -> Path:
    """Names that nothing but their capital tells from other words."""
    folder.mkdir(parents=True)
    for split in ("train", "validation", "test"):
        names = [("Anna", "B-PER"), ("anna", "O"), ("OTTO", "B-PER"), ("otto", "O")]
        sentences = [f"the\tO\ncat\tO\nsaw\tO\n{word}\t{tag}\n" for word, tag in names]
        (folder / f"{split}.conll").write_text("\n".join(sentences * 4), encoding="utf-8")
    return folder


@pytest.mark.parametrize("capitals", [True, False])
def test_names_are_told_by_their_capitals(bases: dict[str, Path], tmp_path: Path, capitals: bool) -> None:
    data = write_names(tmp_path / "data")
    options: dict[str, Any] = {"max_steps": 60, "learning_rate": 3e-3, "capitals": capitals}
    found = train(request("token", bases["bert"], data, tmp_path / "out", **options)).result.test
    assert (found["f1"] == 1.0) == capitals


@pytest.mark.parametrize("capitals", [True, False])
def test_the_model_s_folder_says_what_it_reads(
    bases: dict[str, Path], tmp_path: Path, capitals: bool
) -> None:
    """It is in Hugging Face's layout, and may be named as the tagger of a service."""
    data = write_names(tmp_path / "data")
    train(request("token", bases["bert"], data, tmp_path / "out", capitals=capitals))
    files = find_head(str(tmp_path / "out" / MODEL), Settings())
    assert (files.is_iob2, files.reads_capitals) == (True, capitals)
    other = dataclasses.replace(files, reads_capitals=not capitals)
    assert other.fingerprint != files.fingerprint


def test_segments_of_joined_and_cut_sentences_stay_with_their_pieces(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    data = write_names(tmp_path / "data")
    with (data / "train.conll").open("a", encoding="utf-8") as file:
        file.write("\n" + "Unbelievable\tO\n" * 60 + "Anna\tB-PER\n")
    asked = request("token", bases["bert"], data, tmp_path / "out", capitals=True, context=True, max_steps=1)
    prepared = train(asked).prepared
    (anna,) = prepared.tokenizer("anna", add_special_tokens=False)["input_ids"]
    outside, person = 0, 1
    seen = set()
    for row in prepared.rows:
        assert len(row["token_type_ids"]) == len(row["input_ids"]) == len(row["labels"])
        assert row["token_type_ids"][0] == row["token_type_ids"][-1] == 0
        pairs = zip(row["input_ids"], row["token_type_ids"], row["labels"], strict=True)
        seen |= {(capital, label) for piece, capital, label in pairs if piece == anna}
    assert seen == {(1, person), (0, outside)}


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("roberta", "a base whose tokenizer makes all letters small"),
        ("distilbert", "a base with two segment ids"),
    ],
)
def test_a_base_that_cannot_be_told_is_refused(
    bases: dict[str, Path], tmp_path: Path, base: str, message: str
) -> None:
    data = write_names(tmp_path / "data")
    with pytest.raises(InvalidInput, match=message):
        train(request("token", bases[base], data, tmp_path / "out", capitals=True))
