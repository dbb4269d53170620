"""Rebuild the demo corpus from the development set of SQuAD 1.1.

    python -m indexer.demo.build dev-v1.1.json.gz

The paragraphs stay as they are in SQuAD, character for character, in their order.
"""

import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from indexer.demo import CORPUS

ARTICLES = (
    "Amazon_rainforest",
    "Apollo_program",
    "Black_Death",
    "Immune_system",
    "Nikola_Tesla",
    "Oxygen",
    "Packet_switching",
    "Prime_number",
    "Steam_engine",
    "Warsaw",
)
"""History, nature, science, technology and a city: varied enough that a wrong hit is seen at once."""


def demo_documents(articles: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give one document per paragraph of the chosen articles.

    Args:
        articles: the `data` list of a SQuAD file.
    """
    paragraphs = {article["title"]: article["paragraphs"] for article in articles}
    for name in ARTICLES:
        title = name.replace("_", " ")
        metadata = {"source": "wikipedia", "article": title, "url": f"https://en.wikipedia.org/wiki/{name}"}
        for number, paragraph in enumerate(paragraphs[name]):
            yield {
                "id": f"{name}/{number}",
                "title": title,
                "text": paragraph["context"],
                "metadata": metadata,
            }


def build(squad: Path, corpus: Path) -> None:
    """Write the documents of the gzipped SQuAD file `squad` to `corpus`, one JSON object a line."""
    with gzip.open(squad, "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    lines = (json.dumps(document, ensure_ascii=False) + "\n" for document in demo_documents(articles))
    corpus.write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    build(Path(sys.argv[1]), CORPUS)
