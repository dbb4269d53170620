"""The demo corpus: paragraphs of ten Wikipedia articles, one JSON document a line.

Licence CC BY-SA 4.0; the attribution is in NOTICE. `python -m indexer.demo.build` rebuilds the file.
"""

from pathlib import Path

CORPUS = Path(__file__).with_name("wikipedia.jsonl")
