"""Evaluation: judged queries, rankings, metrics with their uncertainty, and a report of them."""
