"""From results of parts to one outcome per input."""

import itertools
from collections.abc import Sequence

from app.domain import Outcome, OutcomeStatus
from indexer.planning import Result

STRONGEST_FIRST = (
    OutcomeStatus.CREATED,
    OutcomeStatus.UPDATED,
    OutcomeStatus.DELETED,
    OutcomeStatus.UNCHANGED,
    OutcomeStatus.NOT_FOUND,
    OutcomeStatus.REJECTED,
)
MAX_WARNINGS = 20
"""Per outcome: a file of 100,000 rows in a foreign script says so once, not 100,000 times."""


def finished_inputs(results: Sequence[Result]) -> tuple[list[list[Result]], list[Result]]:
    """Group by input; give those whose last part is there, and the results of the one that goes on."""
    groups = [list(group) for _, group in itertools.groupby(results, lambda result: result.part.ordinal)]
    if groups and not groups[-1][-1].part.is_last:
        return groups[:-1], groups[-1]
    return groups, []


def outcome_of(results: Sequence[Result]) -> Outcome:
    """Of one input. A file of several documents is created if one of them is, else updated if one is."""
    statuses = {result.status for result in results}
    status = next(status for status in STRONGEST_FIRST if status in statuses)
    first = results[0].part
    n_rejected = sum(result.status is OutcomeStatus.REJECTED for result in results)
    errors = [result.error for result in results if result.error is not None]
    warnings = [warning for result in results for warning in result.warnings]
    if n_rejected and status is not OutcomeStatus.REJECTED:
        warnings = [f"{n_rejected} of {len(results)} documents of the file were rejected", *errors, *warnings]
    return Outcome(
        ordinal=first.ordinal,
        document_id=first.document_id if len(results) == 1 else first.name,
        status=status,
        n_documents=len(results) - n_rejected,
        n_passages=sum(result.n_passages for result in results),
        n_tokens=sum(result.n_tokens for result in results),
        error=errors[0] if status is OutcomeStatus.REJECTED else None,
        warnings=tuple(warnings[:MAX_WARNINGS]),
    )
