"""A GPU that was mended is shared again."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mews.kube.system.invariant import Breach, RunState
from mews.kube.system.journal import Line
from mews.systems.gpushare.journal import GPUS, UNHEALTHY, WITHHELD

MENDED = "mended"
"""Of whoever mends broken GPUs of a node (``mews.systems.remediation.journal``)."""
_WITHIN_S = 10.0
"""The plugin reads this from its node, and writes its ledger; a write that is refused is tried again."""


class _Owed(Struct):
    """The line by which a GPU was mended, and the last one of its node's ledger since."""

    mended: Line
    last: Line | None = None


class SharedAgain:
    """Given the lines of ledgers and ``mended``, it finds GPUs that a plugin keeps back though they were mended."""

    events = frozenset({("api", MENDED), ("api", GPUS), ("api", WITHHELD), ("api", UNHEALTHY)})

    def __init__(self) -> None:
        self._order: dict[str, tuple[str, ...]] = {}
        """Node -> its GPUs, by index."""
        self._kept: dict[tuple[str, str], frozenset[str]] = {}
        """Node and event -> the GPUs that it keeps back."""
        self._owed: dict[tuple[str, str], _Owed] = {}

    def on_line(self, line: Line) -> None:
        """Take in what is kept back, and what is mended."""
        node = line.actor.partition("/")[2]
        if line.event == MENDED:
            gpu = str(line.fields["gpu"])
            if self._is_kept(node, gpu):
                self._owed[node, gpu] = _Owed(line)
            return
        if line.event == UNHEALTHY:
            order = self._order.get(node, ())
            self._kept[node, UNHEALTHY] = frozenset(order[i] for i in line.fields["indices"] if i < len(order))
        else:
            self._kept[node, line.event] = frozenset(line.fields["unusable" if line.event == GPUS else "gpus"])
        if line.event == GPUS:
            self._order[node] = tuple(line.fields["gpus"])
        for (where, gpu), owed in list(self._owed.items()):
            if where == node and not self._is_kept(node, gpu):
                del self._owed[where, gpu]
            elif where == node and line.t == owed.mended.t:
                owed.last = line

    def on_time(self, t: float, state: RunState, law: int) -> Iterator[Breach]:
        """Judge GPUs that are kept back for too long."""
        for (node, gpu), owed in list(self._owed.items()):
            if t - owed.mended.t > _WITHIN_S + 2 * (state.bound_s("lag_s") or 0.0):
                del self._owed[node, gpu]
                if state.clock_from(law, owed.mended.t) == owed.mended.t:
                    what = f"{gpu} of {node} was mended {t - owed.mended.t:.1f} s ago, and is not shared again"
                    last = owed.last or owed.mended
                    yield Breach((node, gpu, "mended"), what, last, after=owed.mended, due_s=owed.mended.t)

    def _is_kept(self, node: str, gpu: str) -> bool:
        return any(gpu in self._kept.get((node, event), ()) for event in (GPUS, WITHHELD, UNHEALTHY))
