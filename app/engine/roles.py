"""Which model has which role: as the settings say, or the one that ships in the folder of models."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from app.engine.head_files import HeadFiles, find_head
from app.engine.trained_models import DESCRIPTION
from app.settings import Settings

Role = Literal["reranker", "reader", "tagger", "sequence", "lens"]
"""Of models with a head. The bi-encoder is apart."""
ROLES: Sequence[Role] = get_args(Role)
COMPILED: Sequence[Role] = [role for role in ROLES if role != "lens"]
"""The lens is read in float32 by `app.engine.numpy_bert`, one text at a time."""

SHIPPED: Mapping[Role, Sequence[str]] = {
    "reranker": ("reader-reranker",),
    "reader": ("reader-reranker",),
    "tagger": ("tagger",),
    "sequence": ("sentiment",),
    "lens": ("lens",),
}
"""Names of models that take a role for which nothing is set, if they are there."""
READS_PAIRS: frozenset[Role] = frozenset({"reranker", "reader"})


def models_of(role: Role, settings: Settings) -> Sequence[HeadFiles]:
    """All models of a role; none where none is set and none ships.

    Raises:
        ModelUnavailable: a model that is set is missing, or one that is there is damaged.
    """
    return [find_head(name, settings) for name in names_of(role, settings)]


def names_of(role: Role, settings: Settings) -> Sequence[str]:
    """As `models_of`, without looking at the files."""
    chosen = {
        "reranker": (settings.reranker,),
        "reader": (settings.reader,),
        "tagger": (settings.tagger,),
        "sequence": settings.sequence_models,
        "lens": (settings.lens,),
    }[role]
    names = [name for name in chosen if name]
    return names or [name for name in SHIPPED[role] if (settings.models / name / DESCRIPTION).is_file()]
