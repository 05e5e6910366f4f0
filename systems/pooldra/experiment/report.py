"""The report of ``mews experiment attach-before-bind`` for readers who know KEP-5007 and nothing of Mews. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap

from mews.kube.system.comparing import picked
from mews.kube.system.experiment import Row, Tables
from mews.systems.pooldra.experiment.world import (
    CHASSIS,
    COUNTED,
    FAULTS,
    GPUS,
    HAND_OVERS,
    HOSTS,
    LOADS,
    MEAN_S,
    POLL_S,
    POOL_POLL_S,
)

_QUESTION = """\
# Attach before bind: three hand-overs compared

With binding conditions (KEP-5007) a scheduler allocates a device that is not attached to any node, and binds the pod
once the device is there. After the attach the device belongs to the node, but the claim still names the pool's device.
This experiment compares three ways to resolve this:

- `in-place`: the claim keeps the pool's device, and the node's driver prepares it by that name.
- `move`: the device moves to a slice of its node within the same pool, and the claim keeps it.
- `reallocate`: a failure condition releases the claim, and it is allocated again from the node's slice. CoHDI does so.

"""
_FEW = 30
"""Below so many seeds redrawn runs say little of a quantile's interval."""
_MEANING = {
    "lost_per_1000_pods": "lost",
    "in_vain_per_1000_moves": "in vain",
    "moves_per_pod": "moves",
    "wait_p50_s": "p50, s",
    "wait_p99_s": "p99, s",
}


def report(tables: Tables, seeds: Mapping[str, int]) -> str:
    """Return the whole report. ``seeds``: how many, by part."""
    cells, count = tables["cells"], seeds["cells"]
    parts = [_QUESTION, _what_was_run(count), _how_to_repeat(count)]
    parts += [_results(cells, faults) for faults in ("off", "on")]
    parts.append(_what_it_means(cells))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _what_was_run(count: int) -> str:
    loads = ", ".join(f"{load:g}" for load in LOADS)
    return f"""\
## What was run

{len(HAND_OVERS)} hand-overs, {len(LOADS)} loads ({loads}), faults off and on, and {count} seeds for each combination.
The three hand-overs get the same pods and the same faults. Each run is a whole emulated cluster of Kubernetes 1.37 in
virtual time: API server, scheduler, controllers, kubelets, DRA drivers, hosts and chassis.

- {HOSTS} hosts share {GPUS} GPUs on {CHASSIS} chassis. Two hosts are cabled to each chassis, and no GPU is attached at
  first. Operations take as long as on a measured Falcon 4005, and a chassis carries out one at a time.
- Pods ask for 1, 2, 4 or 8 GPUs (30, 25, 25, 20 %) and run for {MEAN_S:g} s on average. The first pods create the load.
  Then {COUNTED} pods arrive as a Poisson process. Only these {COUNTED} pods count for waits.
- The pool driver reads a chassis at least every {POOL_POLL_S} s. The drivers of nodes are notified of new GPUs, and
  look at least every {POLL_S} s.
- A run with faults has {FAULTS} of them. A chassis answers with HTTP errors, or drops connections before or after the
  effect. A GPU never trains. The pool driver or a node's driver is restarted.
- Laws judge each run. For example, no pod is bound before its host shows its GPUs, and no GPU is detached in use.
"""


def _how_to_repeat(count: int) -> str:
    return f"""\
## How to repeat

<!-- needs: yours -->
```
pip install falcon-mews
mews experiment attach-before-bind --seeds {count} --jobs 2 --out DIR --resume
```

No cluster, GPU or root is needed. The same seeds give the same numbers on every machine.
"""


def _results(cells: Sequence[Row], faults: str) -> str:
    heading = "Results without faults" if faults == "off" else "Results with faults"
    lines = [f"## {heading}", ""]
    if faults == "off":
        lines += _legend(max(row["runs"] for row in cells))
    shown = ("hand-over", "load", *_MEANING.values(), "twice", "failed runs")
    lines += [f"| {' | '.join(shown)} |", f"|{'---|' * len(shown)}"]
    for load in LOADS:
        for way in HAND_OVERS:
            (row,) = picked(cells, hand_over=way, load=load, faults=faults)
            values = [_with_interval(row, key) for key in _MEANING]
            failed = f"{row['failed']} of {row['runs']}"
            lines.append(f"| `{way}` | {load:g} | {' | '.join(values)} | {row['doubled']} | {failed} |")
    return "\n".join(lines) + "\n"


def _legend(runs: int) -> list[str]:
    few = " With so few seeds they are wide, and too narrow for p50 and p99." if runs < _FEW else ""
    return [
        f"Brackets hold 95 % intervals over seeds.{few}",
        "",
        "- lost: claims that were released after the attach and whose GPU another claim got, per 1,000 pods",
        "- in vain: GPUs that were detached without having been used, per 1,000 attached GPUs",
        "- moves: attached GPUs per pod",
        "- p50, p99: time from the creation of a pod until it runs",
        "- twice: how often a GPU was allocated while another claim still had it under its other name",
        "- failed runs: runs that broke a law or did not end",
        "",
    ]


def _with_interval(row: Row, key: str) -> str:
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    value = _shown(row[key])
    if low is None or high is None or low == high:
        return value
    return f"{value} [{_shown(max(low, 0.0))}, {_shown(high)}]"  # Nothing that is measured can be negative.


def _shown(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _what_it_means(cells: Sequence[Row]) -> str:
    lines = ["## What it means", ""]
    for way in HAND_OVERS:
        rows = picked(cells, hand_over=way)
        pods, moves = sum(row["pods"] for row in rows), sum(row["moves"] for row in rows)
        lost = sum(row["lost"] for row in rows)
        vain = sum(row["in_vain_per_1000_moves"] * row["moves"] for row in rows) / max(moves, 1) / 10
        twice = sum(row["doubled"] for row in rows)
        text = (
            f"- `{way}`: {pods} pods needed {moves} attached GPUs ({moves / max(pods, 1):.2g} per pod). {vain:.2g} % "
            f"of these were detached unused. After the attach, {lost} pods lost a GPU to another claim. "
            f"A GPU was allocated twice {twice} times."
        )
        lines += wrap(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    failed = sum(row["failed"] for row in cells)
    lines += [f"- {failed} of {sum(row['runs'] for row in cells)} runs broke a law or did not end.", "", _HAZARD]
    if any(row["lost_per_1000_pods"] for row in cells if row["hand_over"] != "reallocate"):
        lines.append(_TIMEOUT)
    if any(row["failed"] for row in picked(cells, hand_over="reallocate")):
        lines.append(_TAKEN_BACK)
    return "\n".join(lines) + "\n"


_HAZARD = """\
While a claim is released and allocated again, the node's slice already offers its GPU. Any pending claim may get it.
The claim that lost its GPU starts again, and a claim for several GPUs may lose them one after the other. The pool
attaches more GPUs for it, while the first ones are idle on a host. Both other ways keep the allocation, so no other
claim can get the GPU in between.
"""
_TAKEN_BACK = """\
With `reallocate`, the pool may take a GPU back from a host at the moment when the scheduler allocates it from the
node's slice. Then the pod is bound, and its node can never prepare the claim. Runs in which this happened did not end.
"""
_TIMEOUT = """\
Faults can release a claim with any hand-over. Either a GPU cannot be attached in three attempts, or a claim for several
GPUs waits longer than the scheduler's binding timeout of 10 minutes. Another claim may then get the GPUs that were
attached for it.
"""
