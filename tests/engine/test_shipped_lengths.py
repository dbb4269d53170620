"""What the shipped joint model thinks of a passage does not hang on how long the pair happens to be.

Passages that do not answer were once cut to whole 32 tokens in training, and the model learned that such a
pair is irrelevant: by 3.7 of its logit at 160 tokens, next to 158 and 162.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.engine.model_files import find_bi_encoder
from app.engine.models import load_tokenizer
from app.engine.pairs import TitledText
from app.engine.reader import Reader
from app.engine.reading_models import load_reading_models
from app.settings import Settings

DEMO = Path(__file__).parents[2] / "indexer" / "demo"
N_TEXTS = 24
NEAR = 2
"""Tokens by which the compared pairs are shorter and longer."""
SETTINGS = Settings(runtime="torch")


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    models = load_reading_models(SETTINGS)
    assert models.reader is not None
    yield models.reader
    models.close()


def relevances(reader: Reader, length: int) -> dict[str, float]:
    """Of pairs of so many tokens: a question about the title of a long paragraph, and its beginning."""
    tokenizer = load_tokenizer(find_bi_encoder(SETTINGS.embedder, offline=True))
    found = {}
    for line in (DEMO / "wikipedia.jsonl").read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        question = f"what is known about {document['title']}?"
        tokens = tokenizer.tokenize(document["text"])
        n_text = length - 3 - len(tokenizer.token_ids([question])[0])
        if len(tokens) > n_text + 2 * NEAR:
            passage = TitledText(document["text"][: int(tokens.ends[n_text - 1])], None)
            (reading,) = reader.read(question, [passage]).passages
            assert reading is not None
            assert reading.relevance is not None
            found[document["id"]] = reading.relevance
        if len(found) == N_TEXTS:
            break
    return found


@pytest.mark.parametrize("length", [160, 192])
def test_a_pair_of_whole_32_tokens_is_as_relevant_as_its_neighbours(reader: Reader, length: int) -> None:
    shorter, exact, longer = (relevances(reader, length + change) for change in (-NEAR, 0, NEAR))
    common = shorter.keys() & exact.keys() & longer.keys()
    assert len(common) >= N_TEXTS // 2
    steps = [exact[id_] - (shorter[id_] + longer[id_]) / 2 for id_ in common]
    assert abs(float(np.mean(steps))) < 1.0
