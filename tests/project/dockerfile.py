"""The Dockerfile as data: stages of instructions, continued lines joined."""

import re
from dataclasses import dataclass

from tests.project.repository import read


@dataclass(frozen=True, slots=True)
class Instruction:
    word: str
    """FROM, RUN, COPY, ..."""
    arguments: str


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    """As in `FROM image AS name`; "final" for the last one, which has none."""
    instructions: tuple[Instruction, ...]

    def all(self, word: str) -> list[str]:
        """Arguments of every such instruction, in order."""
        return [step.arguments for step in self.instructions if step.word == word]

    def only(self, word: str) -> str:
        """Arguments of the one such instruction."""
        (arguments,) = self.all(word)
        return arguments


def stages(text: str | None = None) -> list[Stage]:
    """
    >>> [stage.name for stage in stages("FROM a AS b\\nRUN c \\\\\\n  d\\nFROM e")]
    ['b', 'final']
    """
    source = read("Dockerfile") if text is None else text
    lines = "\n".join(line for line in source.splitlines() if not line.startswith("#"))
    found: list[list[Instruction]] = []
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        if not line.strip():
            continue
        word, _, arguments = line.partition(" ")
        if word == "FROM":
            found.append([])
        found[-1].append(Instruction(word, arguments.strip()))
    return [Stage(_name(steps[0].arguments), tuple(steps)) for steps in found]


def _name(arguments: str) -> str:
    match = re.search(r" AS (\S+)$", arguments)
    return match[1] if match else "final"
