"""One form of log line for both processes, to standard error: time, level, logger, message with key=value."""

from typing import Any

from app.settings import Settings


def log_config(settings: Settings) -> dict[str, Any]:
    """For `logging.config.dictConfig`, and for uvicorn, which hands it to its own processes."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
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
