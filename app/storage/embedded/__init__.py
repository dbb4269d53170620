"""The index seam, embedded: files beside the SQLite rows, for any number of readers and one writer.

Reading order: selection, exact, approximate, segments, snapshots, following (searching); bases, building,
training, tuning, publication (files); dense, index (the whole).
"""

from app.storage.embedded.index import EmbeddedIndex

__all__ = ["EmbeddedIndex"]
