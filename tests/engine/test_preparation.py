"""Compiling a model into the cache, with a model small enough to do it in seconds."""

import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from app.engine.compiled import MANIFEST, NETWORK, WEIGHTS, compiled_folder, read_manifest, write_manifest
from app.engine.models import find_bi_encoder, load_embedder
from app.errors import ModelUnavailable
from app.settings import Settings
from indexer.calibration import calibration_texts
from indexer.preparation import TEMPORARY, is_prepared, prepare_embedder
from tests.engine.tiny_model import MAX_TOKENS, write_tiny_model

TEXTS = calibration_texts()[:30]


@pytest.fixture(scope="module")
def tiny_model(packaged_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny", tokenizer_from=packaged_folder)


@pytest.fixture(scope="module")
def prepared(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = Settings(
        embedder=str(tiny_model),
        cache=tmp_path_factory.mktemp("cache"),
        models=tmp_path_factory.mktemp("models"),
        runtime="openvino",
    )
    prepare_embedder(settings)
    return settings


@pytest.fixture
def copy(prepared: Settings, tmp_path: Path) -> Settings:
    """A prepared cache to be damaged."""
    shutil.copytree(prepared.cache, tmp_path / "cache")
    return prepared.model_copy(update={"cache": tmp_path / "cache"})


def folder_of(settings: Settings) -> Path:
    return compiled_folder(settings.cache, find_bi_encoder(settings.embedder))


@pytest.mark.parametrize("runtime", ["openvino", "torch"])
def test_prompts_and_pooling_are_those_of_sentence_transformers(runtime: str, prepared: Settings) -> None:
    reference = SentenceTransformer(prepared.embedder, device="cpu", local_files_only=True)
    embedder = load_embedder(prepared.model_copy(update={"runtime": runtime}))
    least = 0.97 if runtime == "openvino" else 0.99999
    queries, documents = embedder.encode_queries(TEXTS), embedder.encode_documents(TEXTS)
    embedder.close()
    assert embedder.description.max_tokens == MAX_TOKENS
    for ours, theirs in (
        (queries, reference.encode_query(TEXTS)),
        (documents, reference.encode_document(TEXTS)),
    ):
        assert np.einsum("nd,nd->n", ours.vectors, theirs).min() >= least


def test_both_runtimes_count_tokens_alike_and_share_the_fingerprint(prepared: Settings) -> None:
    compiled = load_embedder(prepared)
    published = load_embedder(prepared.model_copy(update={"runtime": "torch"}))
    ours, theirs = compiled.encode_queries(TEXTS), published.encode_queries(TEXTS)
    assert ours.n_tokens.tolist() == theirs.n_tokens.tolist()
    assert ours.truncated.tolist() == theirs.truncated.tolist()
    assert compiled.description.fingerprint == published.description.fingerprint
    assert compiled.description.runtime.startswith("openvino-int8 ")
    assert published.description.runtime.startswith("torch-float32 ")
    compiled.close()
    published.close()


def test_preparing_twice_does_nothing_the_second_time(copy: Settings) -> None:
    stages: list[str] = []
    before = (folder_of(copy) / MANIFEST).stat().st_mtime_ns
    assert prepare_embedder(copy, progress=lambda stage, _: stages.append(stage)) == folder_of(copy)
    assert stages == ["find", "ready"]
    assert (folder_of(copy) / MANIFEST).stat().st_mtime_ns == before


def test_manifest_says_what_made_the_compiled_model(prepared: Settings) -> None:
    manifest = read_manifest(folder_of(prepared))
    assert manifest is not None
    assert manifest["parts"] == dict(find_bi_encoder(prepared.embedder).parts)
    assert set(manifest) == {
        *("files", "model", "parts", "recipe", "similarity", "tools", "precision", "full_precision")
    }
    assert (manifest["precision"], manifest["full_precision"]) == ("int8", [])


def test_damaged_weights_are_refused_then_replaced_and_progress_only_rises(copy: Settings) -> None:
    weights = folder_of(copy) / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    with pytest.raises(ModelUnavailable, match=r"is damaged \(a checksum is wrong\); run `bifocal models"):
        load_embedder(copy)
    told: list[tuple[str, float]] = []
    (folder_of(copy).parent / f"{TEMPORARY}left-over").mkdir()
    prepare_embedder(copy, progress=lambda stage, share: told.append((stage, share)))
    assert is_prepared(copy)
    load_embedder(copy).close()
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert [stage for stage, _ in told[:2]] == ["find", "load"]
    assert sorted(p.name for p in folder_of(copy).parent.iterdir()) == [".lock", folder_of(copy).name]


@pytest.mark.parametrize("damage", ["network.xml", "network.bin", "manifest.json"])
def test_compiled_model_with_a_missing_file_is_refused(damage: str, copy: Settings) -> None:
    (folder_of(copy) / damage).unlink()
    assert not is_prepared(copy)
    with pytest.raises(ModelUnavailable, match="is damaged"):
        load_embedder(copy)


def test_compiled_model_that_openvino_cannot_read_is_refused(copy: Settings) -> None:
    (folder_of(copy) / NETWORK).write_text("no network")
    write_manifest(folder_of(copy), {})
    with pytest.raises(ModelUnavailable, match="OpenVINO cannot run the model in"):
        load_embedder(copy)


def test_auto_falls_back_to_torch_with_a_warning(copy: Settings, caplog: pytest.LogCaptureFixture) -> None:
    (folder_of(copy) / WEIGHTS).unlink()
    with caplog.at_level(logging.WARNING):
        embedder = load_embedder(copy.model_copy(update={"runtime": "auto"}))
    embedder.close()
    assert embedder.description.runtime.startswith("torch-float32 ")
    assert "which is slower" in caplog.text
    assert "bifocal models prepare" in caplog.text


def test_forced_openvino_without_a_compiled_model_says_how_to_make_one(
    prepared: Settings, tmp_path: Path
) -> None:
    with pytest.raises(ModelUnavailable, match=r"no compiled model of .*; run `bifocal models prepare`"):
        load_embedder(prepared.model_copy(update={"cache": tmp_path}))


def test_compiled_model_of_older_tools_is_made_again(copy: Settings) -> None:
    file = folder_of(copy) / MANIFEST
    manifest = json.loads(file.read_bytes())
    file.write_text(json.dumps(manifest | {"tools": {"openvino": "2025.0.0", "nncf": "3.4.0"}}))
    assert not is_prepared(copy)
    load_embedder(copy).close()


def test_cache_that_cannot_be_written_is_named(prepared: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelUnavailable, match=r"cannot write to .*; set BIFOCAL_CACHE to another folder"):
        prepare_embedder(prepared.model_copy(update={"cache": tmp_path / "file" / "cache"}))


def test_interrupting_leaves_what_was_there(copy: Settings) -> None:
    weights = folder_of(copy) / WEIGHTS
    weights.write_bytes(b"damaged")

    def interrupt(stage: str, share: float) -> None:
        if stage == "load":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_embedder(copy, progress=interrupt)
    assert weights.read_bytes() == b"damaged"
    assert sorted(p.name for p in folder_of(copy).parent.iterdir()) == [".lock", folder_of(copy).name]
