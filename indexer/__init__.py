"""Bifocal's slow side: reading, splitting, ingesting, training, evaluating, and the command line."""
