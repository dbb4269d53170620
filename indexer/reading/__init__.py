"""Files into documents. What parses runs in a process of its own; this package's face imports no parser."""

from indexer.reading.formats import SUFFIXES
from indexer.reading.process import ReaderProcess

__all__ = ["SUFFIXES", "ReaderProcess"]
