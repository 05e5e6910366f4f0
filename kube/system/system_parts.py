"""What a system says about itself beside how it runs: how it is judged, what it measures, what is studied with it.

``OptionsT`` is the model of ``stack.NAME``, ``ConfigT`` the configuration that is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol

from msgspec import Struct, field

if TYPE_CHECKING:  # a system is read by every command: what its parts work with is imported where they do
    from pydantic import BaseModel
    from typing_extensions import TypeVar

    from mews.kube.system.experiment import Experiment
    from mews.kube.system.invariant import Holds, Invariant, RunState
    from mews.kube.system.journal import Line
    from mews.kube.system.profile import MakeOverhead
    from mews.kube.system.reaction import HardwareTimes, Reaction
    from mews.kube.system.simulation import TracePolicy

    OptionsT = TypeVar("OptionsT", bound=BaseModel, default=Any)
    ConfigT = TypeVar("ConfigT", default=Any)
else:
    from typing import TypeVar

    OptionsT, ConfigT = TypeVar("OptionsT"), TypeVar("ConfigT")


class SystemJudging(Struct, Generic[OptionsT, ConfigT], frozen=True):
    """How runs of the system are judged.

    ``invariants`` and ``laws(configuration)`` are made anew for each run: what holds however the system is configured,
    and the laws of its protocol as it is configured; what a published mode breaks by design is ``Breach.known``.
    ``bounds``: how long these let things take, by the names that a scenario may give other values.
    ``holds(configuration)``: which of its pods hold which devices beyond what kubelets say.
    ``part_of(device)``: the UUID of the device of which one that it announces is a part, "" for none.
    ``parts_known(configuration)``: why a container may be given parts of other devices than it is told, where the
    published system has that by design, "" where that is no excuse.
    ``outside_known(options)``: why a device may be given to a pod of this system and by a kubelet to another, where the
    published system leaves it to its users to keep them apart, "" where that is no excuse. It excuses worlds in which
    the steps of a scenario do not keep them apart (``judgedBy: laws``), and no scenario as it stands.
    ``reaction(configuration, times)``: how soon it follows its hardware; None where it pools nothing.
    """

    invariants: Callable[[], Sequence[Invariant[RunState]]] = lambda: ()
    laws: Callable[[ConfigT], Sequence[Invariant[RunState]]] = lambda configuration: ()
    bounds: Mapping[str, float | None] = field(default_factory=dict)
    holds: Callable[[ConfigT], Holds | None] = lambda configuration: None
    part_of: Callable[[str], str] | None = None
    parts_known: Callable[[ConfigT], str] = lambda configuration: ""
    outside_known: Callable[[OptionsT], str] = lambda options: ""
    reaction: Callable[[ConfigT, HardwareTimes], Reaction | None] = lambda configuration, times: None


class ExposedMeasures(Protocol):
    """What components measure themselves with, as Prometheus reads it."""

    def exposition(self) -> bytes:
        """Return all of it in Prometheus' text form."""
        ...


class SystemMeasuring(Struct, Generic[ConfigT], frozen=True):
    """What the system measures of itself, and what a run's journal says of it.

    ``measures`` makes what the components measure themselves with, and ``measured(measures)`` reads it as metrics.
    ``monitored`` makes such that Prometheus reads, for a cluster that stays up, where ``measured`` is not asked; a
    system without has at ``service``, one of its components' services, an answer to GET /metrics.
    ``metrics(lines, speed)`` counts from the lines of a journal of whose seconds each holds ``speed`` emulated ones;
    ``names``: all that either may find, and what each is. ``steps(configuration, lines)``: by numbers of lines, which
    steps of its authors' workflows they are; such a line bears them as its field ``paper`` where a journal is written
    out.
    """

    measures: Callable[[], Any] = lambda: None
    measured: Callable[[Any], Mapping[str, Any]] = lambda measures: {}
    monitored: Callable[[], ExposedMeasures] | None = None
    service: str = ""
    metrics: Callable[[Iterable[Line], float], Mapping[str, Any]] = lambda lines, speed: {}
    names: Mapping[str, str] = field(default_factory=dict)
    steps: Callable[[ConfigT, Iterable[Line]], Mapping[int, str]] = lambda configuration, lines: {}


class SystemStudies(Struct, frozen=True):
    """What is studied with the system: its authors' experiments, the policies that play traces, and ``profiles``, the
    testbeds for ``stack.profile``."""

    experiments: Callable[[], Sequence[Experiment]] = lambda: ()
    trace_policies: Callable[[], Sequence[TracePolicy]] = lambda: ()
    profiles: Callable[[], Mapping[str, MakeOverhead]] = dict
