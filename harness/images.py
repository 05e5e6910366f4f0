"""The images and the played programs of a run: those that Mews ships, and what systems bring."""

from __future__ import annotations

from mews.kube.system.program import PlayedProgram
from mews.systems import registry


def find_program(name: str) -> PlayedProgram:
    """The played program of the name ``SYSTEM/NAME``; its system is loaded now, whether or not it runs.

    Raises LookupError where there is none.
    """
    owner, _, program = name.partition("/")
    if owner not in registry.names():
        raise LookupError(f"{name!r}: no such system; there are {', '.join(registry.names())}")
    programs = registry.system(owner).programs()
    if program not in programs:
        raise LookupError(f"{name!r}: {owner} has no such program; it has {', '.join(programs) or 'none'}")
    return programs[program]
