"""A store in one file, and a store out of it. Reading order: archive, making, restoring."""
