"""Which systems there are: ours by this table, somebody else's by the entry-point group ``mews.systems``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points

from mews.kube.system.system import System

GROUP = "mews.systems"
OURS: Mapping[str, str] = {
    "kod2": "mews.systems.kod2.system:SYSTEM",
    "kubecomp": "mews.systems.kubecomp.system:SYSTEM",
}
"""Name -> ``module:value``; a system is loaded when it is first asked for. In this order the systems of a stack are
started, somebody else's after them."""
DEFAULT = ("kubecomp",)
"""What a stack has that says nothing else."""


def names() -> tuple[str, ...]:
    """All systems that can be had, ours first."""
    return (*OURS, *sorted(point.name for point in entry_points(group=GROUP) if point.name not in OURS))


def system(name: str) -> System:
    """The system of that name.

    Raises KeyError where there is none.
    """
    if name in OURS:
        module, _, attribute = OURS[name].partition(":")
        found: System = getattr(import_module(module), attribute)
        return found
    for point in entry_points(group=GROUP, name=name):
        loaded: System = point.load()
        return loaded
    raise KeyError(name)
