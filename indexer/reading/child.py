"""The process that parses: reads requests from standard input, writes replies to standard output.

A message is a line of JSON; a request's line is followed by the bytes of the file. Started by
`indexer.reading.process` as `python -m indexer.reading.child MEMORY_BYTES CPU_SECONDS`.
"""

import contextlib
import dataclasses
import json
import os
import signal
import sys
from typing import Any, BinaryIO

from app.errors import BadFile
from indexer.reading.files import read_file

try:
    import resource
except ImportError:  # Windows has no limits per process
    resource = None  # type: ignore[assignment]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides; without it, the input ends
    memory_bytes, cpu_s = int(sys.argv[1]), int(sys.argv[2])
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a parser prints must not become a reply
    _limit_memory(memory_bytes)
    while line := sys.stdin.buffer.readline():
        _limit_cpu(cpu_s)
        reply = _reply(json.loads(line), sys.stdin.buffer)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()
        if reply.get("is_last"):
            return


def _reply(request: dict[str, Any], source: BinaryIO) -> dict[str, Any]:
    try:
        body = source.read(request["size"])
        documents = read_file(request["name"], body, media_type=request["media_type"])
        return {"documents": [dataclasses.asdict(document) for document in documents]}
    except BadFile as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"{request['name']}: reading it takes more memory than is allowed", "is_last": True}


def _limit_memory(memory_bytes: int) -> None:
    if resource is not None:
        with contextlib.suppress(ValueError, OSError):  # macOS refuses
            resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _limit_cpu(seconds: int) -> None:
    """From now on. The parent stops a slow file by the clock; this holds when the parent is gone."""
    if resource is not None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        spent = int(usage.ru_utime + usage.ru_stime) + 1
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (spent + seconds, hard))


if __name__ == "__main__":
    main()
