"""What was seen of a cluster and its chassis. Times are Unix seconds; None: nothing dates it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Object = Mapping[str, Any]
Answer = Literal["done", "failed", "error", "lost"]


class ObjectSighting(Struct, frozen=True):
    """An object as it was ``at`` a moment, reduced (``reduction``). ``gone``: it had just been deleted."""

    obj: Object
    at: float | None = None
    gone: bool = False

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Kind, namespace, name and UID."""
        metadata = self.obj["metadata"]
        return (
            str(self.obj.get("kind", "")),
            str(metadata.get("namespace", "")),
            str(metadata["name"]),
            str(metadata.get("uid", "")),
        )


class SeenDevice(Struct, frozen=True):
    """A row of a chassis' listing; ``port`` is None while the device is free."""

    device: str
    uuid: str = ""
    port: str | None = None
    kind: str = "GPU"


class TableReading(Struct, frozen=True):
    """One listing of a chassis."""

    chassis: str
    devices: tuple[SeenDevice, ...]
    ports: tuple[str, ...] = ()
    at: float | None = None


class LostReading(Struct, frozen=True):
    """A chassis did not answer ``at`` that moment; ``why`` in words."""

    chassis: str
    at: float
    why: str


class SeenOperation(Struct, frozen=True):
    """A request to attach or detach, as a log of the chassis has it.

    ``answer``: ``failed`` is a refusal, ``error`` an HTTP status of 5xx, ``lost`` no answer at all.
    """

    chassis: str
    at: float
    kind: Literal["attach", "detach"]
    device: str
    port: str | None = None
    answer: Answer = "done"
    status: int | None = None


class DeviceTrouble(Struct, frozen=True):
    """A GPU error in a host's log. ``address``: the PCI address in the line, "" where it has none."""

    host: str
    at: float
    xid: int
    address: str = ""


class ClusterObservations(Struct, frozen=True):
    """All that was seen. ``notes``: what could not be seen or known, a sentence each."""

    objects: tuple[ObjectSighting, ...] = ()
    readings: tuple[TableReading, ...] = ()
    lost: tuple[LostReading, ...] = ()
    operations: tuple[SeenOperation, ...] = ()
    troubles: tuple[DeviceTrouble, ...] = ()
    notes: tuple[str, ...] = ()
    began: float | None = None
    ended: float | None = None

    def times(self) -> list[float]:
        """Return the moments that date a sighting, a reading or a line, in order."""
        seen: tuple[tuple[Any, ...], ...] = (self.objects, self.readings, self.lost, self.operations, self.troubles)
        return sorted(each.at for part in seen for each in part if each.at is not None)
