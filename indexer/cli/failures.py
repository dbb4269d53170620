"""One clear line on standard error and an exit code instead of a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

FAILED = 1
INTERRUPTED = 130


def fail(message: str, *, code: int = FAILED) -> NoReturn:
    """End the command with "bifocal: message"."""
    sys.stderr.write(f"bifocal: {message}\n")
    raise SystemExit(code)


@contextmanager
def reported() -> Iterator[None]:
    """Turn what a user can act on into one line; faults of the program keep their traceback."""
    # Imported when a command runs: `bifocal --help` needs none of this.
    from pydantic import ValidationError

    from app.errors import BifocalError

    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        name = "BIFOCAL_" + ".".join(str(step) for step in first["loc"]).upper()
        fail(f"setting {name} is {first['input']!r}: {first['msg']}")
    except (BifocalError, OSError, ValueError) as error:
        fail(" ".join(str(error).split()))
    except KeyboardInterrupt:
        fail("interrupted", code=INTERRUPTED)
