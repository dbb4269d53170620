"""Bifocal's serving side: answers requests. Everything that may take minutes lives in `indexer`."""

__version__ = "0.1.0"
