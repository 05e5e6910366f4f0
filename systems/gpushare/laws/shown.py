"""A law on what GPU Share's device plugin writes on its node."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.gpushare.journal import GPUS

SEEN_S = 2.0
"""Within which the plugin has written it, counted from its next look at its GPUs: a node may register later."""


class GpusShown(Invariant[RunState]):
    """The plugin writes on its node which GPUs it shares, in addition to registering with the kubelet (contract
    gpushare.md section 3). Upstream's plugin likewise patches the node's GPU count before it serves (nvidia.go). The
    extender promises parts of the GPUs that are written there. Nothing is owed while a component or the API is down."""

    number = 48
    name = "a node whose GPUs are shared shows them"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", GPUS), ("api", "deleted"), ("kubelet", "registered")}
        | {("component", event) for event in ("started", "killed", "crashed")}
    )

    def __init__(self, resource: str, poll_s: float) -> None:
        self._resource = resource
        self._within_s = poll_s + SEEN_S
        self._shown: set[str] = set()
        self._owed: dict[str, Line] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what registers, and what is shown."""
        node = line.actor.partition("/")[2]
        if line.layer == "component":
            self._owed.clear()
        elif line.event == GPUS:
            self._shown.add(node)
            self._owed.pop(node, None)
        elif line.event == "deleted":
            if line.actor.startswith("node/"):
                self._shown.discard(node)
                self._owed.pop(node, None)
        elif line.fields["resource"] == self._resource and node not in self._shown:
            self._owed[node] = line
        return iter(())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what nobody has shown."""
        if not self._owed:
            return
        seen_s = self._within_s + (state.bound_s("lag_s") or 0.0)
        for node, registered in [each for each in self._owed.items() if t - each[1].t > seen_s]:
            del self._owed[node]
            self._shown.add(node)
            yield Breach((node, "shown"), f"{node} registers {self._resource} and shows no GPUs", registered)
