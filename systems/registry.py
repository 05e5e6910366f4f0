"""Which systems there are: ours by this table, somebody else's by the entry-point group ``mews.systems``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points

from mews.kube.system.system import System

GROUP = "mews.systems"
OURS: Mapping[str, str] = {
    "gpushare": "mews.systems.gpushare.system:SYSTEM",
    "koordinator": "mews.systems.koordinator.system:SYSTEM",
    "dra": "mews.systems.dra.system:SYSTEM",
    "pooldra": "mews.systems.pooldra.system:SYSTEM",
    "cohdi": "mews.systems.cohdi.system:SYSTEM",
    "remediation": "mews.systems.remediation.system:SYSTEM",
    "kod2": "mews.systems.kod2.system:SYSTEM",
    "kubecomp": "mews.systems.kubecomp.system:SYSTEM",
}
"""Name -> ``module:value``; a system is loaded when it is first asked for. In this order the systems of a stack are
started, somebody else's after them by name."""
DEFAULT = ("kubecomp",)
"""What a stack has that says nothing else."""


class UnusableSystemError(ValueError):
    """A system of somebody else's that an entry point names and that cannot be loaded; one line."""


def names() -> tuple[str, ...]:
    """Return all systems that can be had, ours first."""
    return (*OURS, *sorted({point.name for point in entry_points(group=GROUP)} - OURS.keys()))


def system(name: str) -> System:
    """Return the system of that name.

    Raises KeyError where there is none, UnusableSystemError for one that cannot be loaded.
    """
    if name in OURS:
        module, _, attribute = OURS[name].partition(":")
        found: System = getattr(import_module(module), attribute)
        return found
    for point in entry_points(group=GROUP, name=name):
        where = f"the system {name!r} of the entry point {point.value}"
        try:
            loaded = point.load()
        except (ImportError, AttributeError) as error:
            raise UnusableSystemError(f"{where} cannot be loaded: {error}") from error
        if not isinstance(loaded, System) or loaded.name != name:
            what = loaded.name if isinstance(loaded, System) else type(loaded).__name__
            raise UnusableSystemError(f"{where} is {what!r}: must be a mews.kube.system.system.System of that name")
        return loaded
    raise KeyError(name)


def each_usable() -> Iterator[tuple[str, System]]:
    """Yield every system that can be had and loaded, ours first: who has found what it looks for asks for no entry
    points. One that is broken spoils what others do for nobody."""
    for name in OURS:
        yield name, system(name)
    for name in names()[len(OURS) :]:
        try:
            found = system(name)
        except UnusableSystemError:
            continue
        yield name, found


def usable() -> dict[str, System]:
    """Return the same, by name."""
    return dict(each_usable())


def in_order(chosen: Mapping[str, object]) -> list[str]:
    """Return those names in the order in which a stack starts its systems."""
    return [*(name for name in OURS if name in chosen), *sorted(name for name in chosen if name not in OURS)]
