"""Pages, slides and sheets joined into one text."""

from collections.abc import Sequence

SENTENCE_ENDS = (".", "!", "?", ":", "。", "！", "？", "؟", "।", '."', ".”", ".)")


def join_pages(pages: Sequence[str], *, are_separate: bool = False) -> tuple[str, tuple[int, ...]]:
    """The text, and where in it each page begins.

    Pages of a running text are joined by a line end, or by a blank line where a page ends with its sentence.

    Args:
        are_separate: always a blank line, as between slides.
    """
    parts: list[str] = []
    starts: list[int] = []
    n_chars = 0
    for page in pages:
        if n_chars and page:
            whole = are_separate or parts[-1].rstrip().endswith(SENTENCE_ENDS)
            parts.append("\n\n" if whole else "\n")
            n_chars += len(parts[-1])
        starts.append(n_chars)
        if page:
            parts.append(page)
            n_chars += len(page)
    return "".join(parts), tuple(starts)
