"""A scenario file as it is when all is put in its place, whose every place is traced to where it was written."""

from __future__ import annotations

from msgspec import Struct, field

from mews.emulator.yaml_document import Document, Place, dotted


class Origin(Struct, frozen=True):
    """Where something was written: a document, a place in it, and for what repetition (``n=2``)."""

    document: Document
    place: Place
    note: str = ""


class ExpandedDocument(Document, frozen=True):
    """``moved``: place in ``value`` -> where that, and what is in it, was written. Others are those of ``lines``."""

    moved: dict[Place, Origin] = field(default_factory=dict)

    def where(self, place: Place) -> str:
        """``FILE:LINE`` in the file that it was written in."""
        origin = self._origin(place)
        if origin is None:
            return Document.where(self, place)
        return origin.document.where(origin.place)

    def path(self, place: Place) -> str:
        """Return its dotted path in that file, with what repetition it is of."""
        origin = self._origin(place)
        if origin is None:
            return dotted(place)
        return f"{dotted(origin.place)} ({origin.note})" if origin.note else dotted(origin.place)

    def written_at(self, place: Place) -> Place | None:
        """Return the place in the scenario's own file; None for what an included one has."""
        origin = self._origin(place)
        if origin is None:
            return place
        return origin.place if origin.document.name == self.name else None

    def _origin(self, place: Place) -> Origin | None:
        known = place
        while known and known not in self.moved:
            known = known[:-1]
        origin = self.moved.get(known)
        if origin is None:
            return None
        return Origin(origin.document, (*origin.place, *place[len(known) :]), origin.note)
