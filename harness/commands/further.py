"""All sub-commands that are looked up by name: ours that need no typer, then those of systems."""

from __future__ import annotations

from mews.harness.commands import telemetry
from mews.harness.systems import all_commands as commands_of_systems
from mews.kube.system.command import Command

OURS = (telemetry.COMMAND,)


def all_commands() -> dict[str, Command]:
    """By name."""
    return {**{command.name: command for command in OURS}, **commands_of_systems()}
