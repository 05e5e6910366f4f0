"""The systems of a run, and what all systems that can be had bring together.

Systems are found by the registry alone. What needs every one of them (a name that is none of the harness's own) loads
them when it is asked for, so that a run loads those of its stack and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mews.kube.system.command import Command
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.journal import Line
from mews.kube.system.profile import MakeOverhead
from mews.kube.system.program import PlayedProgram
from mews.kube.system.system import System, Watched
from mews.names import must_be
from mews.systems import registry

if TYPE_CHECKING:
    from mews.kube.system.experiment import Experiment
    from mews.kube.system.simulation import TracePolicy


def default_title() -> str:
    """Return the systems of the default stack, as their authors write them."""
    return ", ".join(found.title or found.name for found in map(registry.system, registry.DEFAULT))


def all_systems() -> Sequence[System]:
    """Return every system that can be had and loaded."""
    return list(registry.usable().values())


def names_of(part: Callable[[System], Iterable[str]]) -> tuple[str, ...]:
    """Return the names that all systems have of something, each once."""
    return tuple(dict.fromkeys(name for found in all_systems() for name in part(found)))


def watched_by(systems: Iterable[ConfiguredSystem]) -> list[Watched]:
    """Return the kinds whose changes are journal lines because these systems run."""
    return [kind for each in systems for kind in each.system.watched()]


def images_of(systems: Iterable[ConfiguredSystem]) -> dict[str, Mapping[str, Any]]:
    """Return the images that these systems bring, by name."""
    return {name: image for each in systems for name, image in each.system.images().items()}


def with_steps(lines: Sequence[Line], systems: Iterable[ConfiguredSystem]) -> list[Line]:
    """Return the lines as they are written out: those that are steps of a system's workflow bear these as ``paper``."""
    steps: dict[int, str] = {}
    for each in systems:
        for number, text in each.system.measuring.steps(each.configuration, lines).items():
            steps[number] = f"{steps[number]}; {text}" if number in steps else text
    return [
        replace(line, fields={**line.fields, "paper": steps[line.number]}) if line.number in steps else line
        for line in lines
    ]


def find_program(name: str) -> PlayedProgram:
    """Return the played program of the name ``SYSTEM/NAME``; its system is loaded now, whether or not it runs.

    Raises LookupError where there is none.
    """
    owner, _, program = name.partition("/")
    if owner not in registry.names():
        raise LookupError(f"{name!r}: no such system; systems: {', '.join(registry.names())}")
    programs = registry.system(owner).programs()
    if program not in programs:
        raise LookupError(f"{name!r}: {owner} has no such program; it has {', '.join(programs) or 'none'}")
    return programs[program]


def find_profile(name: str) -> MakeOverhead:
    """Return the testbed of that name.

    Raises LookupError naming those there are.
    """
    for _, found in registry.each_usable():
        profiles = found.studies.profiles()
        if name in profiles:
            return profiles[name]
    raise LookupError(f"profile {name!r}: {must_be(name, names_of(lambda each: each.studies.profiles()))}")


def find_experiment(name: str) -> Experiment:
    """Return the experiment of that name.

    Raises LookupError naming those that are spelt like it.
    """
    experiments = all_experiments()
    if name not in experiments:
        raise LookupError(f"experiment {name!r}: {must_be(name, experiments)}")
    return experiments[name]


def all_experiments() -> dict[str, Experiment]:
    """Return the experiments of all systems, by name."""
    return {each.name: each for found in all_systems() for each in found.studies.experiments()}


def all_trace_policies() -> dict[str, TracePolicy]:
    """Return the policies that traces can be played by, of all systems, by name."""
    return {each.name: each for found in all_systems() for each in found.studies.trace_policies()}


def all_commands() -> dict[str, Command]:
    """Return the sub-commands of all systems, by name; the first system that has a name keeps it."""
    commands: dict[str, Command] = {}
    for found in all_systems():
        for command in found.commands():
            commands.setdefault(command.name, command)
    return commands
