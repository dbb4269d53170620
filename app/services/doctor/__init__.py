"""Examining a store: is it what it should be, and what would mend it?

Reading order: patient, machine, texts, vectors, indexes, models, examining.
"""
