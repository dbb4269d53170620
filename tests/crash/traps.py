"""Points of the code at which a process can be made to kill itself, and how a test chooses one.

A point is a function, before or after the nth call. The process looks whether its trap, a file, names the
point: the product knows nothing of this.
"""

import functools
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

Moment = Literal["before", "after"]
ROWS = "app.storage.sqlite:SqliteRows"

SERVICE_POINTS = (
    f"{ROWS}.submit_job",
    "app.storage.sqlite.jobs:_insert_job",
)
WRITING_POINTS = (
    f"{ROWS}.claim_job",
    f"{ROWS}.write_documents",
    "app.storage.sqlite.writing:store_outcomes",
    f"{ROWS}.finish_job",
    "app.storage.embedded:EmbeddedIndex.apply",
)
PUBLICATION_POINTS = (
    "app.storage.embedded.publication:build",
    "app.storage.embedded.publication:sync",
    "app.storage.embedded.publication:open_base",
    f"{ROWS}.publish_generation",
    "app.storage.sqlite.generations:_forget_old",
    "app.storage.sqlite.generations:_prune_tombstones",
    "app.storage.embedded.publication:Publisher.clean",
    "app.storage.lexical.index:LexicalIndex.repair",
    "app.storage.lexical.index:LexicalIndex.commit",
    "app.storage.lexical.writer:write_position",
    "app.storage.lexical.writer:LexicalWriter._commit",
)
"""Of publication and compaction: a new base, its row, the tombstones that it makes needless, the words."""
POINTS = (*SERVICE_POINTS, *WRITING_POINTS, *PUBLICATION_POINTS)


@dataclass(frozen=True, slots=True)
class Trap:
    point: str
    moment: Moment
    n: int

    def __str__(self) -> str:
        return f"{self.point} {self.moment} {self.n}"


def any_trap(random: Random) -> Trap:
    """Half of them inside publication and compaction."""
    points = random.choice([PUBLICATION_POINTS, (*SERVICE_POINTS, *WRITING_POINTS)])
    return Trap(random.choice(points), random.choice(get_args(Moment)), random.randint(1, 2))


def arm(file: Path) -> None:
    """Make this process obey that trap, from now on."""
    calls: Counter[str] = Counter()
    for point in POINTS:
        _surround(point, functools.partial(_reach, file, calls, point))


def _surround(point: str, reach: Callable[[Moment], None]) -> None:
    module, _, path = point.partition(":")
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, import_module(module))
    function = getattr(owner, name)

    @functools.wraps(function)
    def surrounded(*arguments: Any, **named: Any) -> Any:
        reach("before")
        result = function(*arguments, **named)
        reach("after")
        return result

    setattr(owner, name, surrounded)


def _reach(file: Path, calls: Counter[str], point: str, moment: Moment) -> None:
    try:
        trap = file.read_text()
    except FileNotFoundError:
        return
    wanted, wanted_moment, n = trap.split()
    if (wanted, wanted_moment) != (point, moment):
        return
    calls[trap] += 1
    if calls[trap] == int(n):
        file.unlink()  # the process that is started next lives
        os.kill(os.getpid(), signal.SIGKILL)
