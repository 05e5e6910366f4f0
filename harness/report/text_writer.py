"""Text for people: colours on a terminal, plain lines into a pipe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from mews.harness.terminal import escaped

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {
    "passed": "green",
    "failed": "bold red",
    "error": "bold magenta",
    "incomplete": "yellow",
    "skipped": "yellow",
    "warning": "yellow",
    "noted": "dim",
    "quirk": "yellow",
    "waived": "yellow",
}
"""Verdict -> how it looks on a terminal."""


class TextWriter:
    """Writes lines to a stream as they come. ``rich``: whether that is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.rich = stream.isatty()

    def lines(self, texts: Iterable[str]) -> None:
        """Plain lines."""
        self._stream.write("".join(escaped(text).rstrip() + "\n" for text in texts))
        self._stream.flush()

    def line(self, head: str, style: str, text: str = "") -> None:
        """One line whose head has a style, on a terminal."""
        if not self.rich or not style:
            self.lines([f"{head}{text}"])
            return
        from rich.text import Text

        self.console().print(Text(escaped(head), style=style).append(escaped(text), "none"))
        self._stream.flush()

    def console(self) -> Console:
        """Return what writes tables and styles to the stream."""
        from rich.console import Console

        return Console(file=self._stream, highlight=False, soft_wrap=True)
