"""Devices are detached with their node's consent, given once to one request, and never to what pods need."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, POD_EVENTS, Board, Withdrawal
from mews.systems.kubecomp.laws.own_detach import LAG, OwnOperation, OwnOperations

UNASKED = "the published implementation detaches a device without asking its node (contract kubecomp.md 3, point 12)"
"""Of ``mode: public``."""
EXEC = "the published implementation keeps an error as `holds none` (contract kubecomp.md 3, point 8)"
BY_DESIGN = ("by design",)
"""The key of what is broken by design: one finding for a run."""
GRACE_S = 0.5
"""A word given this long before a detach may still be unknown to Reconfig-Mgr, which looks just before."""
READING_S = 4.0
"""What two readings of a slow chassis take (contract chassis.md 2): before a look of the node, and before a request."""
MOMENT, IN_USE, NOTICED, AGREEMENT = 1, 2, 4, 6


class ConsentBeforeDetach(Invariant[RunState]):
    """Reconfig-Mgr detaches a device only after the device manager of its node consented to that very request. The
    consent must still hold (``consent_fresh_s``). Reconfig-Mgr never detaches a device after a refusal."""

    number = 30
    name = "a device is detached only with its node's consent to that request"
    events = BOARD_EVENTS | {("chassis", "detach-begun")}

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._fresh_s = config.timing.consent_fresh_s
        self._known = UNASKED if config.has(KubeCompFault.UNASKED_MOVE) else ""
        self._own = OwnOperations(config, board)

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what is detached."""
        self._board.take(line)
        if line.layer == "chassis" and line.fields.get("old_port") is not None:
            self._own.on_line(line)
        return iter(())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what was."""
        for own in self._own.due(t, state):
            found = self._wrong(own, state.bound_s(LAG) or 0.0)
            if found is not None:
                why, after = found
                what = f"device {own.gpuid} was detached from {own.line.fields['old_host']} {why}"
                key = BY_DESIGN if self._known else (own.gpuid, str(own.line.number))
                yield Breach(key, what, own.line, own.gpuid, after=after, known=self._known)

    def _wrong(self, own: OwnOperation, lag_s: float) -> tuple[str, Line | None] | None:
        withdrawal, t = own.withdrawal, own.line.t
        if withdrawal is None:
            return "without a request to its node", own.move
        consent = withdrawal.consent_before(t + lag_s)
        refused = withdrawal.refused
        if refused is not None and refused.t < t - GRACE_S - lag_s and not (consent and consent.t > refused.t):
            return f"though {withdrawal.node} refused", refused
        if consent is None:
            return f"before {withdrawal.node} consented", withdrawal.asked
        if t - consent.t > self._fresh_s + GRACE_S + lag_s:
            return f"{t - consent.t:.1f} s after its consent (bound {self._fresh_s:g} s)", consent
        ended = withdrawal.consent_ended
        if ended is not None and ended.t < t - GRACE_S - lag_s:
            return f"after {withdrawal.node} took its consent back", ended
        return None


class NeedsAreKept(Invariant[RunState]):
    """A node never consents to give a device that a container there holds. Nor does it consent if its pods that were
    bound before the request would then have too few devices. Reconfig-Mgr asks for no device that has been held for
    longer than its node takes to report that. This time is a look at the node's kubelet after a reading of its chassis.
    Where a component was down, it is the age that reports may have."""

    number = 32
    name = "a withdrawal never names what a bound pod needs"
    events = BOARD_EVENTS | POD_EVENTS

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._resource = config.resource
        self._stale_s = config.timing.report_stale_s
        self._report_s = config.timing.device_poll_s + READING_S + GRACE_S
        self._known = EXEC if config.has(KubeCompFault.EXEC_HOLDERS) else ""
        self._doubts: list[tuple[Line, tuple[str, ...]]] = []
        self._there: dict[tuple[str, str], tuple[str, ...]] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what is asked for and what is agreed to."""
        self._board.take(line)
        if line.event == "asked":
            self._there[line.fields["gpuid"], line.fields["request"]] = self._healthy(line.fields["node"])
            self._doubts.append((line, ()))
        elif line.event == "consented":
            there = self._there.pop((line.fields["gpuid"], line.fields["request"]), None)
            if there is not None:  # The first word of this consent.
                self._doubts.append((line, there))
        elif line.event == "asked-back":
            self._there.pop((line.fields["gpuid"], line.fields["request"]), None)
        return iter(())

    def _healthy(self, node: str) -> tuple[str, ...]:
        return self._board.announced.get(node, {}).get(self._resource, ())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge it."""
        if not self._doubts:
            return
        lag_s = state.bound_s(LAG) or 0.0
        due = [each for each in self._doubts if t - each[0].t > lag_s]
        self._doubts = [each for each in self._doubts if t - each[0].t <= lag_s]
        for line, there in due:
            found = self._asked(line, state) if line.event == "asked" else self._consented(line, there, state)
            yield from found

    def _asked(self, line: Line, state: RunState) -> Iterator[Breach]:
        gpuid, node = line.fields["gpuid"], line.fields["node"]
        for since, pod in self._holders(gpuid, node, line, state):
            if since is not None and line.t - since.t > self._reported_s(since, gpuid, state):
                what = f"{node} is asked for {gpuid}, which {pod} has held for {line.t - since.t:.1f} s"
                key = BY_DESIGN if self._known else ("asked", gpuid, line.fields["request"])
                yield Breach(key, what, line, gpuid, after=since, known=self._known)

    def _reported_s(self, since: Line, gpuid: str, state: RunState) -> float:
        """Return until when a node reports what is the case since that line."""
        if all(state.clock_from(NOTICED, since.t, each) == since.t for each in (None, gpuid)):
            return self._report_s + 2 * (state.bound_s(LAG) or 0.0)
        # It may not have been heard of for ``report_stale_s``, and was read once more before that.
        return 2 * self._stale_s

    def _consented(self, line: Line, there: tuple[str, ...], state: RunState) -> Iterator[Breach]:
        gpuid, node, request = line.fields["gpuid"], line.fields["node"], line.fields["request"]
        for since, pod in self._holders(gpuid, node, line, state):
            what = f"{node} consented to give {gpuid}, which {pod} holds"
            yield Breach(("held", gpuid, request), what, line, gpuid, after=since)
        withdrawal = self._board.withdrawal(gpuid, request)
        if withdrawal is None or gpuid not in there:
            return
        lacking, last = self._lacking(withdrawal, there, state)
        if lacking > 0:
            what = f"{node} consented to give {gpuid}, and its bound pods lack {lacking} {self._resource}"
            yield Breach(("needed", gpuid, request), what, line, gpuid, after=last)

    def _holders(self, gpuid: str, node: str, line: Line, state: RunState) -> Iterator[tuple[Line | None, str]]:
        if any(state.excused(number, line.t, gpuid) for number in (MOMENT, IN_USE, AGREEMENT)):
            return
        for holding in state.live_holdings():
            whole = gpuid in holding.devices and gpuid not in holding.parts_of
            if whole and holding.host == node and holding.line is not None and holding.line.t <= line.t:
                yield holding.line, holding.pod

    def _lacking(self, withdrawal: Withdrawal, there: tuple[str, ...], state: RunState) -> tuple[int, Line | None]:
        """Return how many devices the node's bound pods lack once it is gone, and the last of the lines that bound
        them."""
        node = withdrawal.node
        held = {device for holding in state.live_holdings() if holding.host == node for device in holding.devices}
        gone = {each.gpuid for each in self._board.all_standing() if each.node == node and each.consents}
        waiting = [
            (int(pod.requests[self._resource]) - pod.held, pod.bound)
            for pod in self._board.on_node(node)
            if self._resource in pod.requests and pod.bound is not None and pod.bound.t < withdrawal.asked.t
        ]
        needed = sum(max(amount, 0) for amount, _ in waiting)
        last = max((line for amount, line in waiting if amount > 0), key=lambda line: line.number, default=None)
        return (needed - len(set(there) - held - gone) if needed else 0), last


class AnsweredOnce(Invariant[RunState]):
    """At most one request stands for a device, at one node. A request that was refused gets no consent later: the
    device is requested again."""

    number = 33
    name = "one withdrawal, one device, one request at a time"
    events = BOARD_EVENTS

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge it by what stood before."""
        self._board.take(line)
        if line.actor.startswith("withdrawal/"):
            gpuid, request = line.fields["gpuid"], line.fields["request"]
            last = self._board.before(line)
            if line.event == "asked" and last is not None and last.asked_back is None:
                what = f"device {gpuid} is asked of {line.fields['node']} while {last.node} is asked for it"
                yield Breach((gpuid, request), what, line, gpuid, after=last.asked)
            if line.event == "consented" and last is not None and last.request == request:
                yield from self._after_refusal(line, last.refused, state)

    def _after_refusal(self, line: Line, refused: Line | None, state: RunState) -> Iterator[Breach]:
        # An incarnation that came after a crash knows of no refusals.
        if refused is None or state.clock_from(NOTICED, refused.t) > refused.t:
            return
        gpuid = line.fields["gpuid"]
        what = f"{line.fields['node']} consents to a request for {gpuid} that it refused"
        yield Breach((gpuid, line.fields["request"], "refused"), what, line, gpuid, after=refused)
