"""The entries of a host's file tree: files, links and folders as values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from mews.emulator.host.pending import PendingAction

Write = Callable[[str, float], PendingAction]
"""What writing a text at a time does."""


class File(Struct, frozen=True):
    """A regular file. ``size``: what ``stat`` says, None: its content's; ``unlink``: what removing it does."""

    read: Callable[[], bytes]
    mode: int = 0o444
    write: Write | None = None
    size: int | None = None
    unlink: Callable[[float], None] | None = None


class Link(Struct, frozen=True):
    """A symbolic link."""

    target: str


class Folder(Struct, frozen=True, eq=False):
    """A folder; ``children`` looks anew. ``leads_to`` has those children that paths go on through, where making all of
    them only to pass by costs more than the file at the end."""

    children: Callable[[], Mapping[str, Node]]
    leads_to: Callable[[], Mapping[str, Node]] | None = None


Node = File | Link | Folder

S = TypeVar("S")


class MadeNodes(Mapping[str, Node], Generic[S]):
    """A folder's entries, each made when it is asked for: of the forty files of a device two are ever read.

    ``makers``: what every folder of its kind has, each from the folder's ``subject``; ``others``: what only this has.
    """

    __slots__ = ("_found", "_makers", "_others", "_subject")

    def __init__(
        self, makers: Mapping[str, Callable[[S], Node]], subject: S, others: Callable[[], Mapping[str, Node]]
    ) -> None:
        self._makers = makers
        self._subject = subject
        self._others = others
        self._found: Mapping[str, Node] | None = None

    def __getitem__(self, name: str) -> Node:
        make = self._makers.get(name)
        return self._rest[name] if make is None else make(self._subject)

    def __iter__(self) -> Iterator[str]:
        yield from self._makers
        yield from self._rest

    def __len__(self) -> int:
        return len(self._makers) + len(self._rest)

    @property
    def _rest(self) -> Mapping[str, Node]:
        if self._found is None:
            self._found = self._others()
        return self._found
