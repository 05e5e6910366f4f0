"""The public GPU Share extender as an oracle: its program, built from its sources (``tests.programs``), is played
sequences of pods, and each difference of ours is of a row of docs/gpushare.md.

A row is proved and not only named: ours is asked again about a case in which what the row is about is as the public
extender takes it, and must then answer the very same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import pytest

from mews.systems.gpushare import ledger, policy
from tests.systems.gpushare.public.drawing import drawn
from tests.systems.gpushare.public.playing import ours, public
from tests.upstream.oracles.model import Answer, Case, Oracle


def _without_init_containers(case: Case) -> Case:
    return {**case, **{part: [{**pod, "first": []} for pod in case[part]] for part in ("arrivals", "late")}}


def _ended_at_once(case: Case) -> Case:
    """With those that are on their way out gone: to the public extender they hold nothing."""
    pods = [pod | {"phase": "Failed"} if pod["phase"] == "deleting" else pod for pod in case["pods"]]
    endings = {name: "Failed" if phase == "deleting" else phase for name, phase in case["endings"].items()}
    return {**case, "pods": pods, "endings": endings}


def _first_is_broken(case: Case) -> Case:
    """With an index that is none read as 0."""
    nodes = [node | {"unhealthy": "0"} if node.get("unhealthy") == "" else node for node in case["nodes"]]
    return {**case, "nodes": nodes}


def _as_it_is(case: Case) -> Case:
    return case


ROWS: Mapping[str, Callable[[Case], Case]] = {
    "init containers": _without_init_containers,
    "terminating pods": _ended_at_once,
    "an empty list of broken GPUs": _first_is_broken,
    "more used than available": _as_it_is,
}
"""Row of docs/gpushare.md -> the case as the public extender takes it; of the last see ``_below_nothing``."""
_LAST = "more used than available"


def row_of(case: Case, theirs: Answer, mine: Answer) -> str:
    """The row whose change of the case makes ours answer as the public extender does; of several that are needed the
    first; "" where none does."""
    for row in ROWS:
        if _changed(case, (row,)) == theirs:
            return row
    pairs = (pair for size in (2, 3, 4) for pair in combinations(ROWS, size))
    return next((rows[0] for rows in pairs if _changed(case, rows) == theirs), "")


def _changed(case: Case, rows: Sequence[str]) -> Answer:
    for row in rows:
        case = ROWS[row](case)
    if _LAST not in rows:
        return ours(case)
    with pytest.MonkeyPatch.context() as patch:
        for module in (policy, ledger):
            patch.setattr(module, "free_memory", _below_nothing)
        return ours(case)


def _below_nothing(gpus: Sequence[policy.SharedGpu], used: Mapping[str, int]) -> dict[str, int]:
    """Of a GPU of which more is used than it has the public extender finds almost 2**64 free: it subtracts numbers
    that have no sign (pkg/cache/nodeinfo.go, getAvailableGPUs)."""
    return {gpu.uuid: (gpu.memory - used.get(gpu.uuid, 0)) % 2**64 if gpu.usable else 0 for gpu in gpus}


GPU_SHARE = Oracle(
    name="gpushare",
    drawn=drawn,
    theirs=public,
    ours=ours,
    row_of=row_of,
    rows=tuple(ROWS),
    page="gpushare.md",
    heading="## Compared with the public extender",
    cases=2000,
    golden=Path(__file__).with_name("golden.jsonl"),
    recorded=100,
)
