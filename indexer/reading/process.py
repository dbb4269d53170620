"""Files are parsed in a process of their own: a crash, a hang or a bomb costs one file, not the worker."""

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from app.domain import Document
from app.errors import BadFile

FILES_PER_PROCESS = 500
"""Then a fresh one, so that what parsers leak does not add up."""


class ReaderProcess:
    """Reads one file after the other in a child process that is kept while it does well.

    Not safe for several threads at once. Close it, or use it in a `with` statement.

    Args:
        timeout_s: by the clock, per file.
        memory_bytes: address space of the child; not enforced on Windows and macOS.
    """

    def __init__(self, *, timeout_s: float, memory_bytes: int) -> None:
        self._timeout_s = timeout_s
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._n_files = 0

    def read(self, name: str, body: bytes, *, media_type: str | None = None) -> list[Document]:
        """As `indexer.reading.files.read_file`.

        Raises:
            BadFile: also for a file that takes too long or makes its parser crash.
        """
        process = self._running()
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(self._timeout_s, stop)
        timer.start()
        try:
            answer = _exchange(process, name, body, media_type)
        finally:
            timer.cancel()
        self._n_files += 1
        reply: dict[str, Any] = json.loads(answer) if answer.endswith(b"\n") else {"is_last": True}
        if reply.get("is_last") or is_late.is_set() or self._n_files >= FILES_PER_PROCESS:
            self.close()
        if "documents" in reply:
            return [_document(fields) for fields in reply["documents"]]
        if "error" in reply:
            raise BadFile(reply["error"])
        if is_late.is_set():
            raise BadFile(f"{name}: reading it takes longer than the allowed {self._timeout_s:g} seconds")
        raise BadFile(f"{name}: reading it crashed the parser or took more memory than is allowed")

    def close(self) -> None:
        process, self._process, self._n_files = self._process, None, 0
        if process is not None:
            process.kill()
            process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()  # it died between two files
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603  our own module, no word of the file's
                [sys.executable, "-P", "-m", "indexer.reading.child", *self._limits()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the worker, which ends when the file is read
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(str(Path(path).absolute()) for path in sys.path),
                },
            )
        return self._process

    def _limits(self) -> Sequence[str]:
        return str(self._memory_bytes), str(math.ceil(self._timeout_s) + 1)


def _exchange(process: subprocess.Popen[bytes], name: str, body: bytes, media_type: str | None) -> bytes:
    """The reply line; incomplete or empty if the child ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"name": name, "media_type": media_type, "size": len(body)}
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n" + body)
        process.stdin.flush()
    except OSError:  # it ended before it took the whole file
        return b""
    return process.stdout.readline()


def _document(fields: dict[str, Any]) -> Document:
    return Document(**{**fields, "page_starts": tuple(fields["page_starts"])})
