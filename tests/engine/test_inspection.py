"""Filling masks and predicting next sentences, compared with transformers on tiny models."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, BertForPreTraining, pipeline

from app.engine.inspected import InspectedModels
from app.engine.inspection import InspectedModel
from app.engine.torch_models import load_module
from app.engine.trained_models import find_trained_model
from app.errors import InvalidInput, ModelNotConfigured, TextTooLong
from app.settings import Settings
from tests.engine.tiny_trained import write_tiny_lens, write_tiny_published


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, packaged_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("lens")
    return write_tiny_published(folder, "BertForPreTraining", tokenizer_from=packaged_folder)


@pytest.fixture(scope="module")
def lens(folder: Path) -> InspectedModel:
    return InspectedModels(Settings(lens=str(folder))).of_role("lens")


def test_a_mask_is_filled_as_the_pipeline_does(tmp_path: Path, packaged_folder: Path) -> None:
    folder = write_tiny_published(tmp_path, "BertForMaskedLM", tokenizer_from=packaged_folder)
    model = InspectedModels(Settings(lens=str(folder))).of_role("lens")
    text = "Warsaw is the [MASK] of Poland, and [MASK] of its seats."
    masks = model.fill_masks(text, top_k=4)
    fill: Any = pipeline("fill-mask", model=str(folder), top_k=4)
    expected = fill(text)
    assert [start for start, _ in masks] == [14, 36]
    for (_, found), reference in zip(masks, expected, strict=True):
        assert [each.token_id for each in found] == [each["token"] for each in reference]
        assert [each.score for each in found] == pytest.approx(
            [each["score"] for each in reference], rel=1e-3
        )


def test_next_sentences_are_predicted_as_transformers_does(lens: InspectedModel, folder: Path) -> None:
    pair = ("She opened the door.", "Nobody was there.")
    inputs = AutoTokenizer.from_pretrained(folder)(*pair, return_tensors="pt")
    with torch.inference_mode():
        expected = BertForPreTraining.from_pretrained(folder)(**inputs).seq_relationship_logits[0]
    assert lens.follows(lens.see(*pair, truncate=False).pieces) == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_trained_lens_takes_from_its_base_what_training_left(tmp_path: Path, packaged_folder: Path) -> None:
    write_tiny_lens(tmp_path / "models", tokenizer_from=packaged_folder)
    trained = find_trained_model("lens", models=tmp_path / "models")
    model = InspectedModels(Settings(models=tmp_path / "models")).of_role("lens")
    pieces = model.see("one", "two", truncate=False).pieces
    with torch.inference_mode():
        outputs = load_module(trained)(
            input_ids=torch.tensor(pieces.ids[None].astype("int64")),
            attention_mask=torch.ones((1, len(pieces)), dtype=torch.int64),
            token_type_ids=torch.tensor(pieces.segments[None].astype("int64")),
        )
    expected = outputs.seq_relationship_logits[0].float().tolist()
    assert model.follows(pieces) == pytest.approx(expected, abs=1e-2)


def test_a_text_without_a_mask_or_too_long_around_it_is_refused(lens: InspectedModel) -> None:
    with pytest.raises(InvalidInput, match=r"write \[MASK\]"):
        lens.fill_masks("Warsaw", top_k=1)
    with pytest.raises(TextTooLong) as caught:
        lens.fill_masks("[MASK] " + "word " * 200, top_k=1)
    assert caught.value.n_tokens == 203


def test_a_model_without_the_head_says_which_have_it(packaged_folder: Path) -> None:
    model = InspectedModels(Settings(models=Path("nowhere"))).of_role("embedder")
    with pytest.raises(
        ModelNotConfigured, match="no head that fills masks; models of BertForPreTraining have"
    ):
        model.fill_masks("[MASK]", top_k=1)


def test_without_a_lens_the_setting_is_named() -> None:
    with pytest.raises(ModelNotConfigured, match="set BIFOCAL_LENS"):
        InspectedModels(Settings(models=Path("nowhere"))).of_role("lens")
