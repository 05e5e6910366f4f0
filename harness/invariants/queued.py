"""Law 17: operations of one chassis queue, and what they say of themselves is what its table shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

EFFECTS: Mapping[str, str] = {"attached": "attach", "detached": "detach"}
BEGINNINGS: Mapping[str, str] = {"attach-begun": "attach", "detach-begun": "detach"}
FOREIGN = ("edited", "inserted", "removed")
LINKS = ("link-down", "link-up")
WHOLE = ("table", "down", "up")
"""Of the chassis, not of one device."""
UNATTACHED = 5
UNFINISHED_S = 1200.0
CANCELLED, DROPPED = "cancelled", "dropped"

Finding = tuple[str, Line | None]


class _Open(Struct):
    """An operation that was begun and is not finished. ``effect``: how it changed the table, ``meddled``: what somebody
    else did to its device since."""

    begun: Line
    kind: str
    device: str
    target: str | None
    effect: Line | None = None
    meddled: Line | None = None


class _Management(Struct):
    """The management CPU of a chassis: the table as its lines have it, and its queue in the order of its numbers."""

    ports: dict[str, str | None] = field(default_factory=dict)
    dark: dict[str, Line] = field(default_factory=dict)
    """The devices whose links are down, by the lines that say so."""
    queue: dict[int, _Open] = field(default_factory=dict)
    first: Line | None = None
    last: Line | None = None
    down: Line | None = None
    finished: Line | None = None

    def oldest(self) -> _Open | None:
        """Return the one that is in progress."""
        return next(iter(self.queue.values()), None)


class Queued(Invariant[ObservedState]):
    """A chassis performs its writes one after the other, in the order in which they were begun (contract chassis.md 2).
    A write takes effect and is finished only after each write that was begun earlier, unless it is cancelled. Each
    write is finished once, within 20 minutes of the one before. After an operation that is reported to have happened,
    the device is on the requested port. An operation that did not happen has changed nothing. Components ask only for
    devices that exist. No device is attached while its link is down. The law does not judge operations that were begun
    before the journal."""

    number = 17
    name = "operations of one chassis queue, and its table shows what they did"
    events = frozenset(
        {("component", "killed"), ("component", "started")}
        | {("step", event) for event in ("begun", "passed", "failed")}
        | {("chassis", event) for event in (*BEGINNINGS, *EFFECTS, *FOREIGN, *LINKS, *WHOLE, "operation-finished")}
    )

    def __init__(self) -> None:
        self._chassis: dict[str, _Management] = {}
        self._by_hand: set[int] = set()
        """Steps of the scenario that operate a chassis now: they may ask for what there is not."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge one line of a chassis."""
        if line.layer == "step":
            self._step(line)
            return
        if line.layer == "component":
            # It counts from 1 again, and what it had begun is lost.
            if line.actor in self._chassis:
                self._chassis[line.actor] = _Management(self._chassis[line.actor].ports)
            return
        if "device" not in line.fields and line.event not in WHOLE:
            return
        box = self._chassis.setdefault(line.actor, _Management())
        if line.event in BEGINNINGS and box.ports and line.fields["device"] not in box.ports and not self._by_hand:
            what = f"{line.actor}: {line.event} of {line.fields['device']!r}, which the chassis does not have"
            yield Breach((line.actor, "unknown", str(line.number)), what, line)
        found = self._look(box, line)
        if found is not None:
            what, after = found
            yield Breach((line.actor, str(line.number)), f"{line.actor}: {what}", line, after=after)

    def _step(self, line: Line) -> None:
        if line.event == "begun" and line.fields.get("do") == "chassis":
            self._by_hand.add(line.fields["step"])
        elif line.event != "begun":
            self._by_hand.discard(line.fields["step"])

    def _look(self, box: _Management, line: Line) -> Finding | None:
        if line.event in BEGINNINGS:
            return _begin(box, line)
        if line.event in EFFECTS:
            return _effect(box, line)
        if line.event == "operation-finished":
            return _finish(box, line)
        if line.event == "table":
            box.ports = {device: row.get("port") for device, row in line.fields["devices"].items()}
            box.queue, box.first, box.last, box.down, box.finished = {}, None, None, None, None
            box.dark = {}
        elif line.event in LINKS:
            _link(box, line)
        elif line.event in ("down", "up"):
            box.down = line if line.event == "down" else None
        else:
            _meddle(box, line)
        return None

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge what was begun and is not finished."""
        for name, box in self._chassis.items():
            oldest = box.oldest()
            if oldest is None:
                continue
            last_s = max(oldest.begun.t, box.finished.t if box.finished is not None else 0.0)
            if t - last_s <= UNFINISHED_S:
                continue  # no window lets the clock start earlier
            since_s = max(state.windows.clock_from(UNATTACHED, last_s, each) for each in (None, _gpuid(oldest.begun)))
            if t - since_s > UNFINISHED_S:
                what = f"{name}: {oldest.kind} of {oldest.device} is not finished after {t - oldest.begun.t:.1f} s"
                yield Breach((name, "unfinished", str(oldest.begun.number)), what, oldest.begun)


def _gpuid(line: Line) -> str:
    return str(line.fields.get("gpuid", ""))


def _begin(box: _Management, line: Line) -> Finding | None:
    number, device = line.fields["operation"], line.fields["device"]
    before, box.last = box.last, line
    box.first = box.first or line
    if before is not None and number <= before.fields["operation"]:
        return f"operation {number} begins after operation {before.fields['operation']}", before
    box.queue[number] = _Open(line, BEGINNINGS[line.event], device, line.fields.get("port"))
    if box.down is not None:
        return f"operation {number} begins while nobody is there", box.down
    return None


def _effect(box: _Management, line: Line) -> Finding | None:
    device, port = line.fields["device"], line.fields.get("port")
    kind, before = EFFECTS[line.event], box.ports.get(device)
    box.ports[device] = port
    oldest = box.oldest()
    own = next((each for each in box.queue.values() if (each.device, each.kind) == (device, kind)), None)
    if box.first is None:
        return None
    if own is None:
        return f"{device} is {line.event} and nobody asked for it", box.finished
    if own is not oldest and oldest is not None:
        return f"{device} is {line.event} while the {oldest.kind} of {oldest.device} is in progress", oldest.begun
    if own.effect is not None:
        return f"{device} is {line.event} twice by one operation", own.effect
    own.effect = line
    if kind == "attach" and device in box.dark:
        return f"{device} is attached to port {port} while its link is down", box.dark[device]
    if kind == "attach" and port != own.target:
        return f"{device} is attached to port {port}, and was to be attached to {own.target}", own.begun
    if kind == "attach" and before is not None:
        return f"{device} is attached to port {port} while it is on port {before}", own.begun
    return None


def _finish(box: _Management, line: Line) -> Finding | None:
    number, fields = line.fields["operation"], line.fields
    own, oldest, box.finished = box.queue.pop(number, None), box.oldest(), line
    if own is None:
        if fields["answer"] == DROPPED and not fields["truth"]:
            return None  # Nobody was there to begin it.
        if box.first is None or number < box.first.fields["operation"]:
            return None
        return f"operation {number} is finished and was not begun, or twice", box.last
    if oldest is not None and oldest.begun.number < own.begun.number and fields.get("reason") != CANCELLED:
        return f"operation {number} is finished before the {oldest.kind} of {oldest.device}", oldest.begun
    return None if own.meddled is not None else _truth(box, own, fields["truth"])


def _truth(box: _Management, own: _Open, truth: bool) -> Finding | None:
    port = box.ports.get(own.device)
    if truth and port != own.target:
        return f"the {own.kind} of {own.device} happened, it says, and the device is on port {port}", own.begun
    if truth and own.kind == "attach" and own.effect is None:
        return f"the attach of {own.device} happened, it says, and changed nothing", own.begun
    if not truth and own.effect is not None:
        return f"the {own.kind} of {own.device} did not happen, it says, and changed the table", own.effect
    return None


def _link(box: _Management, line: Line) -> None:
    if line.event == "link-down":
        box.dark[line.fields["device"]] = line
    else:
        box.dark.pop(line.fields["device"], None)


def _meddle(box: _Management, line: Line) -> None:
    device = line.fields["device"]
    box.ports[device] = None if line.event == "removed" else line.fields.get("port")
    if line.event in ("inserted", "removed"):
        box.dark.pop(device, None)
    for each in box.queue.values():
        if each.device == device:
            each.meddled = line
