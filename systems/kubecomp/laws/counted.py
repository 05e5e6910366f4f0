"""A pod is refused only where its pools have too few devices (contract kubecomp.md section 2, PreFilter)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, POD_EVENTS, Board
from mews.systems.kubecomp.laws.own_detach import LAG

_REFUSED = re.compile(r"requires (\d+) GPU but only (\d+) GPU in the pool")
_KNOWN_S = 5.0
"""What nodes announce for so long, and what becomes of pods, the scheduler has seen."""


class PoolIsCounted(Invariant[RunState]):
    """PreFilter counts the devices of each pool, less what pods ask for that are bound to its nodes or wait for devices
    there. A pod that has just given up waiting still counts. It refuses a pod with the largest number that is left. The
    law counts only devices that plugins have announced for a while, and so counts too few rather than too many."""

    number = 99
    name = "a pod is refused for want of devices only where its pools have too few"
    events = BOARD_EVENTS | POD_EVENTS | {("api", "event"), ("host", "xid")}

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._resource = config.resource
        self._scheduler = config.scheduler_name
        self._pools = {node.name: node.pool for node in config.nodes}
        self._judges = not config.faults
        self._lists: dict[str, Line] = {}
        self._refusals: list[tuple[Line, int]] = []

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what is announced, and who is refused."""
        self._board.take(line)
        if not self._judges or state.bound_s(LAG):
            return iter(())
        if line.layer == "host":
            self._lists.pop(line.actor.partition("/")[2], None)
        elif line.event == "devices" and line.fields["resource"] == self._resource:
            self._lists[line.actor.partition("/")[2]] = line
        elif line.event == "event" and line.actor == self._scheduler:
            match = _REFUSED.search(str(line.fields["message"]))
            if match is not None:
                self._refusals.append((line, int(match[2])))
        return iter(())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge refusals once their moment is over: a pod that was bound in it counts."""
        if not self._refusals or t <= self._refusals[-1][0].t:
            return
        refusals, self._refusals = self._refusals, []
        for line, counted in refusals:
            if state.clock_from(self.number, line.t) > line.t:
                continue
            for pool in sorted({*self._pools.values()}):
                free = self._free(pool, line)
                if free > counted:
                    what = f"{line.fields['object']} is refused for {counted} devices, and {free} are free in {pool}"
                    last = max(self._lists.values(), key=lambda each: each.number)
                    yield Breach((str(line.fields["object"]), pool, str(line.number)), what, line, after=last)

    def _free(self, pool: str, line: Line) -> int:
        nodes = [node for node, where in self._pools.items() if where == pool]
        lists = (self._lists.get(node) for node in nodes)
        there = sum(len(each.fields["healthy"]) for each in lists if each and line.t - each.t > _KNOWN_S)
        for actor, pod in self._board.pods.items():
            is_over = pod.ended is not None and line.t - pod.ended.t > _KNOWN_S
            was_held = pod.cleared is not None and pod.bound is None and line.t - pod.cleared.t <= _KNOWN_S
            is_there = was_held or bool({pod.node, pod.target} & {*nodes})
            if actor != line.fields["object"] and is_there and not is_over:
                there -= int(pod.requests.get(self._resource, 0))
        return there
