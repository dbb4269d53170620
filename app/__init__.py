"""Bifocal's serving side: answers requests. Everything that may take minutes lives in `indexer`."""
