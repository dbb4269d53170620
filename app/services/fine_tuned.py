"""Classification and entities by fine-tuned models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.entities import Aggregation
from app.engine.linear_head import LinearHead
from app.engine.sequence_model import SequenceModel
from app.engine.tagger import Tagged, Tagger
from app.services.classification import Classified
from app.services.text_results import BLANK, Scored, read_at, visible_places
from app.services.timing import Timer


@dataclass(frozen=True, slots=True)
class TaggedTexts:
    results: tuple[Tagged | str, ...]
    """By text; why not, for one that was not read."""
    timings_ms: Mapping[str, float]


def classify_with(model: SequenceModel, texts: Sequence[str], *, top_k: int, truncate: bool) -> Classified:
    """
    Raises:
        TextTooLong: a text exceeds the model's limit, and `truncate` is False.
        Overloaded: too many other requests use the model.
    """
    timer = Timer()
    if model.load():
        timer.lap("load")
    places = visible_places(texts)
    read = read_at(places, texts, lambda visible: model.classify(visible, truncate=truncate))
    no_head = LinearHead(np.empty(0, np.float32), np.empty(0, np.float32), model.multi_label)
    scored = Scored(
        model.labels, read.logits, no_head.probabilities(read.logits), read.n_tokens, read.truncated
    )
    results = scored.results(places, n_texts=len(texts), top_k=top_k)
    return Classified(results, model.description.max_tokens, timer.timings_ms())


def tag_texts(tagger: Tagger, texts: Sequence[str], *, aggregation: Aggregation) -> TaggedTexts:
    """
    Raises:
        Overloaded: too many other requests use the model.
    """
    timer = Timer()
    if tagger.load():
        timer.lap("load")
    places = visible_places(texts)
    results: list[Tagged | str] = [BLANK] * len(texts)
    for place, tagged in zip(
        places, tagger.tag([texts[i] for i in places], aggregation=aggregation), strict=True
    ):
        results[place] = tagged
    return TaggedTexts(tuple(results), timer.timings_ms())
