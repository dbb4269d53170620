"""Log-odds to probabilities, in float64, for display: rankings are made of log-odds."""

import math


def sigmoid(logit: float) -> float:
    """
    >>> sigmoid(0.0), sigmoid(-1000.0), sigmoid(1000.0)
    (0.5, 0.0, 1.0)
    """
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    power = math.exp(logit)
    return power / (1 + power)
