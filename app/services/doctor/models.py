"""What the store was made with fits the encoder that runs."""

from collections.abc import Iterator

from app.domain.health import Fault
from app.engine.models import find_bi_encoder
from app.errors import BifocalError, ModelUnavailable, Overloaded
from app.services.doctor.patient import Patient


def model(patient: Patient) -> Iterator[Fault]:
    try:
        embedder = patient.load()
        embedder.encode_queries(["Does the model answer?"])
    except Overloaded:
        raise
    except (BifocalError, OSError) as error:
        yield Fault(str(error), patient.settings.embedder)
    else:
        patient.embedder = embedder


def encoder(patient: Patient) -> Iterator[Fault]:
    if patient.embedder is None:
        return
    runs = patient.embedder.description
    second = patient.settings.second_embedder
    fitting = {runs.fingerprint}
    if second:
        try:
            fitting.add(find_bi_encoder(second, offline=patient.settings.offline).fingerprint)
        except ModelUnavailable as error:
            yield Fault(str(error), second)
    for collection in patient.collections:
        if collection.fingerprint not in fitting:
            yield Fault(
                f"it was made by {collection.model} ({collection.fingerprint}), the encoder that runs is "
                f"{runs.name} ({runs.fingerprint}); searches of it by meaning are refused: run the other "
                "encoder, or re-index it",
                f"collection {collection.name}",
                is_warning=collection.standby_of is not None,  # the former form, as it is kept for a rollback
            )


def classifiers(patient: Patient) -> Iterator[Fault]:
    """The active versions of those trained on examples."""
    if patient.embedder is None:
        return
    runs = patient.embedder.description
    for version in patient.rows.classifiers():
        if version.fingerprint != runs.fingerprint:
            yield Fault(
                f"it was trained on vectors of {version.model} ({version.fingerprint}), the encoder that "
                f"runs is {runs.name} ({runs.fingerprint}); train it again, or run the other encoder",
                f"classifier {version.name}, version {version.version}",
            )
