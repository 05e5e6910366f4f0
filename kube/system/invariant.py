"""What a law is that every run must keep: how it is judged, what it may look at, and what it finds.

The laws that hold for every cluster with a pool are the harness's own; a system brings those that follow from what it
promises, and says by ``Holds`` which of its pods hold which devices where the kubelet does not know it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct, field

from mews.kube.api.objects import Object
from mews.kube.system.journal import Line


class Held(Struct, frozen=True):
    """Devices of one resource that a container of a pod holds, or ("") each of its containers. A device of a chassis
    goes by its GPUID or its UUID, any other by a name that is its own on that node. ``parts_of``: whole devices of
    which it holds a part, as other pods may. ``instead_of``: resources of which it does not use what its kubelet gave
    it."""

    container: str
    resource: str
    devices: tuple[str, ...]
    parts_of: tuple[str, ...] = ()
    instead_of: tuple[str, ...] = ()


Holds = Callable[[Object], Iterable[Held]]
"""``holds(pod)``: which whole devices a live pod on a node holds beyond what its kubelet says, read from the pod alone
(its annotations, for example). Devices that several pods may share are named as such (``parts_of``)."""


class ObservedHolding(Struct, frozen=True):
    """Devices of one resource that a container of a live pod holds: given by its kubelet (``line`` says so), or by the
    word of its system (``line`` is then the last one about the pod, None where there is none yet). ``parts_of``: whole
    devices of which some of these are parts (``SystemJudging.part_of``)."""

    pod: str
    uid: str
    container: str
    resource: str
    host: str
    devices: tuple[str, ...]
    line: Line | None
    parts_of: tuple[str, ...] = ()


class Breach(Struct, frozen=True):
    """A law does not hold. ``device`` (a GPUID) narrows which faults may excuse it; ``key`` makes it one finding
    however often it is seen; ``first`` is the event that broke it, and ``after`` the event that had to come before it:
    the last one that the law counted on, or None where there is none. ``known``: why a published system breaks this law
    by design, in one sentence; the run reports such a breach and does not fail for it. ``due_s``: of
    something that did not come, the moment by which it was due; the first line after it is named. ``due_after``: of
    something that had to come next, the line after which; the one that came in its place is named."""

    key: tuple[str, ...]
    what: str
    first: Line | None
    device: str | None = None
    after: Line | None = None
    known: str = ""
    due_s: float | None = None
    due_after: Line | None = None


class ClusterObjects(Struct, frozen=True):
    """Nodes by name and pods by namespace/name, as the API shows them. ``now_s`` is unix time. ``others``: objects of
    further kinds by the plural of their kind (``services``) and by namespace/name, where all components are ours."""

    nodes: Mapping[str, Object]
    pods: Mapping[str, Object]
    now_s: float
    others: Mapping[str, Mapping[str, Object]] = field(default_factory=dict)


class RunState(Protocol):
    """What is known of a run at the moment that is judged. Times are seconds of the journal."""

    def bound_s(self, name: str) -> float | None:
        """Return how long that may take in this run (``SystemJudging.bounds``, or as the scenario says); None: for
        ever."""
        ...

    def live_holdings(self) -> Sequence[ObservedHolding]:
        """Return what the containers of live pods hold."""
        ...

    def excused(self, invariant: int, t: float, device: str | None = None) -> bool:
        """Return whether a breach of that law, seen then, may be a fault's doing."""
        ...

    def clock_from(self, invariant: int, since: float, device: str | None = None) -> float:
        """Return when the clock of a bound starts that would start at ``since``: after the last excuse."""
        ...


RunStateT = TypeVar("RunStateT", contravariant=True)


class Invariant(Protocol[RunStateT]):
    """One law of one run; a system's is an ``Invariant[RunState]``. Each method may find the same breach again, and one
    that is not overridden finds nothing. ``events``: the (layer, event) of the lines that ``on_line`` looks at; None
    for every line. ``ours_alone``: it knows how the included components behave, not only what must hold: it is judged
    in virtual time, and where nothing of somebody else's is in the place of one of them. ``of_time``: it says how soon
    something is done, or that it is reported: a fault between a component and the API may be why it is not."""

    number: int
    name: str
    events: Collection[tuple[str, str]] | None = None
    ours_alone: bool = False
    of_time: bool = False

    def on_line(self, line: Line, state: RunStateT) -> Iterable[Breach]:
        """Breaches that this journal line makes; the state has taken the line in."""
        return ()

    def on_time(self, t: float, state: RunStateT) -> Iterable[Breach]:
        """Breaches that the passing of time makes."""
        return ()

    def on_objects(self, t: float, objects: ClusterObjects, state: RunStateT) -> Iterable[Breach]:
        """Breaches that a change of a pod or a node makes."""
        return ()


class LineBook(ABC):
    """What the lines of a run amount to, for several laws: whichever of them is given a line first has it booked."""

    def __init__(self) -> None:
        self._booked = -1

    def take(self, line: Line) -> None:
        """Book one line, once."""
        if line.number > self._booked:
            self._booked = line.number
            self._book(line)

    @abstractmethod
    def _book(self, line: Line) -> None: ...
