"""What the extender counts, in Prometheus' text form."""

from __future__ import annotations

from bisect import bisect_left

BUCKETS_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)


class ExtenderMetrics:
    """Counters of one replica."""

    def __init__(self) -> None:
        self._nodes = {"passed": 0, "refused": 0}
        self._binds = {"bound": 0, "failed": 0}
        self._buckets = [0] * (len(BUCKETS_S) + 1)
        self._sum_s = 0.0

    def filtered(self, nodes: int, refused: int, took_s: float) -> None:
        """A filter call was answered."""
        self._nodes["passed"] += nodes - refused
        self._nodes["refused"] += refused
        self._buckets[bisect_left(BUCKETS_S, took_s)] += 1
        self._sum_s += took_s

    def bound(self, success: bool) -> None:
        """A bind call was answered."""
        self._binds["bound" if success else "failed"] += 1

    def text(self) -> str:
        """Return all of them."""
        lines = _head("gpushare_filter_nodes_total", "counter", "Nodes that filter calls let pass or refused.")
        lines += [f'gpushare_filter_nodes_total{{result="{name}"}} {count}' for name, count in self._nodes.items()]
        lines += _head("gpushare_binds_total", "counter", "Bind calls, by how they ended.")
        lines += [f'gpushare_binds_total{{result="{name}"}} {count}' for name, count in self._binds.items()]
        lines += _head("gpushare_filter_seconds", "histogram", "How long a filter call took.")
        total = 0
        for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), self._buckets, strict=True):
            total += count
            lines.append(f'gpushare_filter_seconds_bucket{{le="{bound}"}} {total}')
        lines += [f"gpushare_filter_seconds_sum {self._sum_s}", f"gpushare_filter_seconds_count {total}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
