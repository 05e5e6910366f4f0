"""One line of the catalogue."""

from __future__ import annotations

from msgspec import Struct


class CatalogueEntry(Struct, frozen=True):
    """``name`` as it is typed, ``summary`` in a line. ``of``: whose or what sort it is (``chassis``, ``host``, a
    system's name), "" where all are of one sort; ``use``: how it is typed, "" where the name alone is enough."""

    name: str
    summary: str
    of: str = ""
    use: str = ""

    def matches(self, word: str) -> bool:
        """Return whether the word is in it, in capitals or not."""
        return word.lower() in " ".join((self.name, self.of, self.summary, self.use)).lower()


def first_sentence(text: str) -> str:
    """Return that of a docstring or a comment, in one line."""
    paragraph = " ".join(text.strip().split("\n\n", 1)[0].split()).replace("``", "`")
    head, dot, _ = paragraph.partition(". ")
    return (head if dot else paragraph).removesuffix(".")
