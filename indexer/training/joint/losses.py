"""What the joint model is trained to do."""

import torch
from torch.nn import functional

from indexer.training.joint.pairs import IGNORED


def span_loss(
    start_logits: torch.Tensor,
    end_logits: torch.Tensor,
    *,
    start: torch.Tensor,
    end: torch.Tensor,
    allowed: torch.Tensor,
    weight: torch.Tensor,
) -> torch.Tensor:
    """Weighted mean over the pairs of (CE(start) + CE(end)) / 2, among the tokens that may bear an answer.

    Source: Devlin et al. 2019, sections 4.2 and 4.3.

    Args:
        start_logits, end_logits, allowed: (n, t).
        start, end: (n,), positions; IGNORED takes no part.
        weight: (n,), of each pair.
    """
    known = start != IGNORED
    if not bool(known.any()):
        return (start_logits.sum() + end_logits.sum()) * 0
    least = torch.finfo(torch.float32).min
    losses = torch.zeros(int(known.sum()), dtype=torch.float32)
    for logits, target in ((start_logits, start), (end_logits, end)):
        masked = logits.float().masked_fill(~allowed, least)[known]
        losses = losses + functional.cross_entropy(masked, target[known], reduction="none") / 2
    weight = weight[known]
    return (losses * weight).sum() / weight.sum()


def ranking_loss(logits: torch.Tensor, *, relevance: torch.Tensor, group: torch.Tensor) -> torch.Tensor:
    """Among the passages of a question the relevant one should win, and the logit should say how likely.

    Mean over groups of -log softmax of the relevant passage (a localized contrastive loss, Gao et al. 2021),
    plus the mean binary cross entropy over the pairs, which fixes the scale. Groups of one pair, and pairs
    that are not judged, take no part.

    Args:
        logits, relevance, group: (n,); relevance is 1, 0 or NaN.
    """
    judged = ~torch.isnan(relevance)
    same = (group[:, None] == group[None, :]) & judged[None, :]  # (n, n)
    has_rivals = judged & (same.sum(1) > 1)
    if not bool(has_rivals.any()):
        return logits.sum() * 0
    logits = logits.float()
    least = torch.finfo(torch.float32).min
    log_share = logits - torch.logsumexp(logits[None, :].expand_as(same).masked_fill(~same, least), dim=1)
    winners = has_rivals & (relevance == 1)
    listwise = -log_share[winners].mean()
    pointwise = functional.binary_cross_entropy_with_logits(logits[has_rivals], relevance[has_rivals])
    return listwise + pointwise
