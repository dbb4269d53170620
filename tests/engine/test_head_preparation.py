"""Models with heads: found, compiled and run like the original, in both runtimes."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.engine.compiled import compiled_folder, read_manifest
from app.engine.head_files import HeadFiles, find_head
from app.engine.models import load_tokenizer, make_runner
from app.engine.pairs import PairEncoder, TitledText
from app.engine.roles import Role, models_of, names_of
from app.engine.runner import TokenSequence
from app.errors import ModelUnavailable
from app.settings import Settings
from indexer.calibration import calibration_pairs
from indexer.preparation import is_prepared, prepare, prepare_head
from tests.engine.tiny_trained import (
    MAX_TOKENS,
    write_tiny_joint_model,
    write_tiny_lens,
    write_tiny_published,
)
from tests.project.repository import ROOT

READ = """
import sys
from app.engine.pairs import TitledText
from app.engine.reading_models import load_reading_models
from app.settings import Settings
models = load_reading_models(Settings.from_environment())
passages = [TitledText("A river runs.", "Rivers")] * 3
assert len(models.reranker.rerank("who", passages).logits) == 3
assert all(reading.spans for reading in models.reader.read("who", passages).passages)
models.close()
print(*sorted(name for name, module in sys.modules.items() if module is not None))
"""


@pytest.fixture(scope="module")
def prepared(packaged_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A joint model of our own and a published reader, both compiled."""
    folder = tmp_path_factory.mktemp("heads")
    write_tiny_joint_model(
        folder / "models", tokenizer_from=packaged_folder, calibration={"full_precision": [".*spans.*"]}
    )
    write_tiny_published(folder / "qa", "BertForQuestionAnswering", tokenizer_from=packaged_folder)
    settings = Settings(
        models=folder / "models", reader=str(folder / "qa"), cache=folder / "cache", runtime="openvino"
    )
    for role in ROLES:
        (files,) = models_of(role, settings)
        prepare_head(files, role, settings)
    return settings


ROLES: tuple[Role, ...] = ("reranker", "reader")


def sequences_of(files: HeadFiles) -> list[TokenSequence]:
    encoder = PairEncoder(load_tokenizer(files), max_tokens=files.max_tokens)
    return [
        encoder.inputs(encoder.question(pair.question), TitledText(pair.text, pair.title)).inputs[0].sequence
        for pair in calibration_pairs()[::10]
    ]


@pytest.mark.parametrize("role", ROLES)
def test_the_compiled_network_gives_what_the_original_gives(role: Role, prepared: Settings) -> None:
    (files,) = models_of(role, prepared)
    compiled, original = (
        make_runner(files, prepared.model_copy(update={"runtime": runtime}))
        for runtime in ("openvino", "torch")
    )
    sequences = sequences_of(files)
    try:
        pairs = list(zip(compiled.run(sequences), original.run(sequences), strict=True))
    finally:
        compiled.close()
        original.close()
    assert compiled.runtime.startswith("openvino-")
    for output in files.outputs:
        ours, theirs = (np.concatenate([np.ravel(pair[i][output.name]) for pair in pairs]) for i in (0, 1))
        assert len(ours) >= len(sequences)
        assert np.corrcoef(ours, theirs)[0, 1] >= 0.97


def test_outputs_do_not_depend_on_the_batch(prepared: Settings) -> None:
    (files,) = models_of("reranker", prepared)
    sequences = sequences_of(files)
    runner = make_runner(files, prepared.model_copy(update={"runtime": "torch"}))
    try:
        for together, sequence in zip(runner.run(sequences), sequences, strict=True):
            (alone,) = runner.run([sequence])
            assert together["start"].shape == (len(sequence),)
            for name in ("relevance", "start", "end"):
                np.testing.assert_allclose(together[name], alone[name], atol=1e-4)
    finally:
        runner.close()


def test_roles_are_taken_by_what_is_set_or_by_what_ships(prepared: Settings) -> None:
    assert [f.name for f in models_of("reranker", prepared)] == ["reader-reranker"]
    assert names_of("reader", prepared) == [prepared.reader]
    assert names_of("lens", prepared) == []
    assert names_of("reranker", Settings(models=Path("nowhere"))) == []
    with pytest.raises(ModelUnavailable, match="the model tagger-x is not on this machine"):
        models_of("tagger", prepared.model_copy(update={"tagger": "tagger-x"}))


def test_a_published_model_is_described_by_its_configuration(packaged_folder: Path, tmp_path: Path) -> None:
    folder = write_tiny_published(
        tmp_path / "two",
        "BertForSequenceClassification",
        tokenizer_from=packaged_folder,
        num_labels=2,
        type_vocab_size=1,
    )
    files = find_head(str(folder), Settings())
    assert files.labels == ("LABEL_0", "LABEL_1")
    assert [output.name for output in files.outputs] == ["logits"]
    assert (files.max_tokens, files.pad_id, files.has_segments) == (MAX_TOKENS, 0, False)


def test_another_architecture_is_refused_with_what_is_supported(
    packaged_folder: Path, tmp_path: Path
) -> None:
    folder = write_tiny_published(tmp_path / "x", "BertForMultipleChoice", tokenizer_from=packaged_folder)
    with pytest.raises(
        ModelUnavailable, match="BertForMultipleChoice are not supported; supported are Joint"
    ):
        find_head(str(folder), Settings())


def test_a_part_may_be_left_in_full_precision(prepared: Settings) -> None:
    (files,) = models_of("reranker", prepared)
    manifest = read_manifest(compiled_folder(prepared.cache, files))
    assert manifest is not None
    assert manifest["full_precision"] == [".*spans.*"]
    other = dataclasses.replace(files, calibration={})
    assert compiled_folder(prepared.cache, other) != compiled_folder(prepared.cache, files)


def test_reading_with_compiled_models_imports_no_torch(prepared: Settings) -> None:
    environment = {
        "BIFOCAL_CACHE": str(prepared.cache),
        "BIFOCAL_MODELS": str(prepared.models),
        "BIFOCAL_READER": prepared.reader,
        "BIFOCAL_RUNTIME": "openvino",
    }
    done = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported = {name.partition(".")[0] for name in done.stdout.decode().split()}
    assert "openvino" in imported
    assert not imported & {"torch", "transformers", "sentence_transformers", "nncf", "openvino_telemetry"}


def test_one_missing_head_makes_the_whole_unprepared(prepared: Settings, model_cache: Path) -> None:
    assert not is_prepared(prepared.model_copy(update={"cache": model_cache}))


def test_each_model_is_named_and_prepared_once_whatever_its_roles(
    packaged_folder: Path, tmp_path: Path
) -> None:
    """But the lens, which nothing runs compiled."""
    write_tiny_joint_model(tmp_path / "models", tokenizer_from=packaged_folder)
    write_tiny_lens(tmp_path / "models", tokenizer_from=packaged_folder)
    base = tmp_path / "tiny-base"
    settings = Settings(embedder=str(base), models=tmp_path / "models", cache=tmp_path / "cache")
    assert [*names_of("reranker", settings), *names_of("reader", settings)] == ["reader-reranker"] * 2
    told: list[str] = []
    folders = prepare(settings, progress=lambda stage, _share: told.append(stage))
    assert list(folders) == [str(base), "reader-reranker"]
    assert told.count(f"{base}: find") == 1
    assert told.count("reader-reranker: find") == 1
    assert is_prepared(settings)
