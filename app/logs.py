"""Log lines to standard error, as text or as JSON, with the id of the request that they belong to."""

import datetime as dt
import json
import logging
from contextvars import ContextVar
from typing import Any

from app.settings import Settings

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""Of the request that this task or thread works for."""

STANDARD = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "color_message"})
"""Attributes that every record has; others were given as `extra`."""


class TextLines(logging.Formatter):
    """Time, level, logger, message with key=value."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - overrides
        line = super().formatMessage(record)
        found = request_id.get()
        return line if found is None else f"{line} request={found}"


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, process; if any, request_id, exception, extra."""

    def format(self, record: logging.LogRecord) -> str:
        moment = dt.datetime.fromtimestamp(record.created, dt.UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        found = request_id.get()
        if found is not None:
            line["request_id"] = found
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        line |= {name: value for name, value in vars(record).items() if name not in STANDARD}
        return json.dumps(line, default=str)


FORMATS = {"text": TextLines, "json": JsonLines}


def log_config(settings: Settings) -> dict[str, Any]:
    """For `logging.config.dictConfig`, and for uvicorn, which hands it to its own processes."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": FORMATS[settings.log_format]}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "stream": "ext://sys.stderr",
            }
        },
        "loggers": {"faiss.loader": {"level": "WARNING"}},  # its search for a build that fits, at every start
        "root": {"handlers": ["stderr"], "level": settings.log_level.upper()},
    }
