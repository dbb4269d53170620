"""What a model has done since it was loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Activity:
    n_batches: int = 0
    n_sequences: int = 0
    n_tokens: int = 0
    """Without padding."""
    n_waiting: int = 0
    """Texts of interactive calls that wait now."""
