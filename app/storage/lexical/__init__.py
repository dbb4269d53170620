"""Passages found by their words: Tantivy files beside the rows, and the newest rows in memory."""
