"""Examples to learn from, read from files; whatever is wrong with one names its file and line."""
