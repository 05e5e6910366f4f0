"""The entries of a host's file tree: files, links and folders as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mews.emulator.host.pending import PendingAction

Write = Callable[[str, float], PendingAction]
"""What writing a text at a time does."""


@dataclass(frozen=True, slots=True)
class File:
    """A regular file. ``size``: what ``stat`` says, None: its content's; ``unlink``: what removing it does."""

    read: Callable[[], bytes]
    mode: int = 0o444
    write: Write | None = None
    size: int | None = None
    unlink: Callable[[float], None] | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True, eq=False)
class Folder:
    """A folder; ``children`` looks anew. ``leads_to`` has those children that paths go on through, where making all of
    them only to pass by costs more than the file at the end."""

    children: Callable[[], Mapping[str, Node]]
    leads_to: Callable[[], Mapping[str, Node]] | None = None


Node = File | Link | Folder
