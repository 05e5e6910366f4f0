"""``mews live``: all commands on a running ``mews up`` as one group. Each goes by its own name, too."""

from __future__ import annotations

from collections.abc import Sequence

from mews.harness.commands.help_layout import LIVE_WORDS
from mews.kube.system.command import Command, CommandContext


def run(words: Sequence[str], context: CommandContext) -> int:
    """The command that the words name; without any the list of them.

    Raises as that does, and BadInput for a name that none has.
    """
    from mews.harness.commands.of_systems import run_command

    commands = _commands()
    if not words:
        context.write(_overview(commands))
        return 0
    named = {name: command for name, command in commands.items() if name.split()[0] == words[0]}
    return run_command(named or commands, words)


def _commands() -> dict[str, Command]:
    """By name, in the order in which the group shows them."""
    from mews.harness.commands.further import all_commands

    every = all_commands()
    return {name: every[name] for word in LIVE_WORDS for name in every if name.split()[0] == word}


def _overview(commands: dict[str, Command]) -> str:
    width = max(map(len, commands))
    rows = "".join(f"  {name:{width}}  {command.summary}\n" for name, command in commands.items())
    return f"Usage: mews live COMMAND [ARGS]...\n\nCommands, each also without `live`:\n{rows}"


class LiveCommand(Command, frozen=True):
    """The group: its help is the list of its commands."""

    def help(self) -> str:
        """What ``--help`` prints."""
        examples = "".join(f"  {example}\n" for example in self.examples)
        return f"{_overview(_commands())}\nExamples:\n{examples}"


COMMAND = LiveCommand(
    "live",
    f"Run {', '.join(LIVE_WORDS[:-1])} or {LIVE_WORDS[-1]} on a running `mews up`.",
    run,
    "COMMAND [ARGS]...",
    passes_on=True,
    examples=("mews live status", "mews live fault list"),
)
