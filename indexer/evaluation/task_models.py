"""The models of this service, as what tasks are judged by."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from app.engine.numpy_bert import softmax
from app.engine.pairs import TitledText
from app.engine.probability import sigmoid
from app.engine.reader import Reader
from app.engine.sequence_model import SequenceModel
from app.engine.tagger import Tagger
from app.errors import InvalidInput
from indexer.evaluation.task_examples import ContextQuestion, LabelledText
from indexer.evaluation.task_judging import GivenAnswer, GivenEntity, GivenLabel


def answering(reader: Reader) -> Callable[[ContextQuestion], GivenAnswer]:
    """The best span of the context, as sure as searches with answers say."""

    def answer(question: ContextQuestion) -> GivenAnswer:
        (reading,) = reader.read(question.question, [TitledText(question.context)]).passages
        if reading is None or not reading.spans:
            return GivenAnswer("", 0.0)
        span = reading.spans[0]
        logit = reader.answer_logit(span, reading.relevance)
        return GivenAnswer(question.context[span.start : span.end], sigmoid(logit))

    return answer


def finding(tagger: Tagger) -> Callable[[str], Sequence[GivenEntity]]:
    def find(text: str) -> Sequence[GivenEntity]:
        (tagged,) = tagger.tag([text])
        return [GivenEntity(each.start, each.end, each.entity_group) for each in tagged.entities]

    return find


def classifying(model: SequenceModel) -> Callable[[str], GivenLabel]:
    """The likeliest label; a text beyond the model's limit is cut at its end."""

    def classify(text: str) -> GivenLabel:
        probabilities = softmax(model.classify([text], truncate=True).logits)[0]  # (k,)
        best = int(probabilities.argmax())
        return GivenLabel(model.labels[best], float(probabilities[best]))

    return classify


def named_as(labels: Sequence[str], texts: Sequence[LabelledText]) -> list[LabelledText]:
    """With the model's own labels: data may number them, from 0.

    >>> named_as(["negative", "positive"], [LabelledText("good", "1")])
    [LabelledText(text='good', label='positive')]

    Raises:
        InvalidInput: a label that the model does not have.
    """
    numbered = {str(i): label for i, label in enumerate(labels)}
    known = {**numbered, **{label: label for label in labels}}
    unknown = next((each.label for each in texts if each.label not in known), None)
    if unknown is not None:
        raise InvalidInput(f"the model has no label {unknown!r}; it has {', '.join(labels)}")
    return [replace(each, label=known[each.label]) for each in texts]
