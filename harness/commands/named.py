"""Runs the command that words name, of commands of one or several words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mews.harness import terminal
from mews.harness.errors import BadInputError, RequirementError
from mews.kube.system.command import Command, CommandContext
from mews.names import must_be


def run_command(commands: Mapping[str, Command], words: Sequence[str]) -> int:
    """Run the command of the longest name that the words begin with.

    Raises BadInputError, RequirementError.
    """
    for name in sorted(commands, key=lambda name: -len(name.split())):
        length = len(name.split())
        if list(words[:length]) == name.split():
            return _run(commands[name], words[length:])
    if words[1:2] == ["--help"]:
        terminal.out("\n".join(commands[name].help() for name in sorted(commands)))
        return 0
    typed = f"mews {' '.join(words)}"
    raise BadInputError(f"{typed}: {must_be(typed, [f'mews {name}' for name in commands])}")


def _run(command: Command, arguments: Sequence[str]) -> int:
    if "--help" in (arguments[:1] if command.passes_on else arguments):
        terminal.out(command.help())
        return 0
    try:
        return command.run(arguments, CommandContext(terminal.out, _kubeconfig))
    except ValueError as error:
        raise BadInputError(f"mews {command.name}: {error}") from error
    except LookupError as error:
        raise RequirementError(f"mews {command.name}: {error.args[0] if error.args else error}") from error


def _kubeconfig(name: str) -> Path:
    from mews.harness.commands.instances import running

    return Path(running(name).folder) / "kubeconfig"
