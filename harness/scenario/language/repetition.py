"""``forEach``: a step, a group of steps or a template once for each of some values."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.scenario.language.bindings import Refuse
from mews.harness.scenario.language.names import NAME

_MOST = 1000
_MEANT = "must be a list, or {from: 1, to: 3} with both ends"


def repetitions(given: Any, refuse: Refuse) -> Sequence[Mapping[str, Any]]:
    """Return the names and values of each round: ``{host: [a, b]}``, ``{n: {from: 1, to: 3}}``; of several names every
    combination, the last the fastest.

    Raises ScenarioError.
    """
    if not isinstance(given, Mapping) or not given:
        raise refuse(given, "must name what changes: {host: [host-1, host-2]} or {n: {from: 1, to: 3}}")
    columns: list[Sequence[Any]] = []
    rounds = 1
    for name, values in given.items():
        if NAME.fullmatch(str(name)) is None:
            raise refuse(name, "must be a name: letters, digits, '_' and '-', a letter first", name)
        columns.append(_values(values, refuse, name))
        rounds *= len(columns[-1])
        if rounds > _MOST:
            raise refuse(values, f"at most {_MOST} rounds, these are {rounds}", name)
    return [dict(zip(given, each, strict=True)) for each in itertools.product(*columns)]


def _values(values: Any, refuse: Refuse, name: str) -> Sequence[Any]:
    if isinstance(values, list):
        if not values:
            raise refuse(values, "is empty: there would be nothing to do", name)
        return values
    if not isinstance(values, Mapping) or set(values) != {"from", "to"}:
        raise refuse(values, _MEANT, name)
    first, last = values["from"], values["to"]
    if not all(isinstance(end, int) and not isinstance(end, bool) for end in (first, last)):
        raise refuse(values, "from and to must be whole numbers", name)
    if last < first:
        raise refuse(values, "the first must not be above the last", name)
    if last - first >= _MOST:
        raise refuse(values, f"at most {_MOST} rounds, these are {last - first + 1}", name)
    return range(first, last + 1)
