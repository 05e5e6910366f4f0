"""Invariants of other packages: judged in every run once they are installed, or where a scenario names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from mews.kube.system.invariant import Invariant
from mews.registry import ValueRegistry

NUMBERS = range(100, 1000)
"""All others are the harness's and the systems' own: faults excuse invariants by them, scenarios expect them."""

Make = Callable[[], Invariant[Any]]


def _accept(name: str, value: Any) -> Make:
    made = value() if callable(value) else None
    number = getattr(made, "number", None)
    judges = all(callable(getattr(made, method, None)) for method in ("on_line", "on_time", "on_objects"))
    if not judges or not isinstance(getattr(made, "name", None), str):
        raise TypeError("must make a mews.kube.system.invariant.Invariant with number and name when called")
    if not isinstance(number, int) or number not in NUMBERS:
        raise ValueError(f"its number is {number}; must be {NUMBERS.start} to {NUMBERS.stop - 1}")
    return cast(Make, value)


INVARIANTS: Final[ValueRegistry[Make]] = ValueRegistry("invariant", "mews.invariants", {}, _accept)
"""Ours are no part of it: the judge has them always (``mews.harness.invariants.judge``)."""


def made(named: Iterable[str] = ()) -> list[Invariant[Any]]:
    """Return new ones for one run: those of installed packages, and those that the scenario names.

    Raises NotRegisteredError.
    """
    makers = dict.fromkeys(INVARIANTS.find(name) for name in (*INVARIANTS.others(), *named))
    return [make() for make in makers]
