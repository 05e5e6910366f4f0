"""How long something takes to compute, in CPU seconds, so that what else the machine does counts less."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_LEAST_S = 0.01
_ROUNDS = 3


def cpu_seconds(prepare: Callable[[Any], Callable[[], object]], task: Any) -> float:
    """Return that of one call of what is prepared for the task: the least of three means, each over as long as can be
    measured."""
    call = prepare(task)
    call()
    calls, least_s = 1, float("inf")
    for _ in range(_ROUNDS):
        spent_s = _spent_s(call, calls)
        while spent_s < _LEAST_S:
            calls *= 2
            spent_s = _spent_s(call, calls)
        least_s = min(least_s, spent_s / calls)
    return least_s


def _spent_s(call: Callable[[], object], calls: int) -> float:
    begun_s = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - begun_s
