"""What `bifocal evaluate --task` can judge, apart from what it imports to do so."""

from typing import Literal

Task = Literal["qa", "ner", "classification"]
