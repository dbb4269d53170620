"""What a write that the system refused becomes."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import StorageError, StorageFull, StorageReadOnly

FULL = (errno.ENOSPC, errno.EDQUOT)
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextmanager
def failed_writes(message: str) -> Iterator[None]:
    """Raises StorageFull, StorageReadOnly or StorageError with the message and the system's reason."""
    try:
        yield
    except OSError as error:
        kind = StorageError
        if error.errno in FULL:
            kind = StorageFull
        elif error.errno in READ_ONLY:
            kind = StorageReadOnly
        raise kind(f"{message}: {error.strerror or error}") from error
