"""``mews live``: all commands on a running ``mews up`` as one group. Each goes by its own name, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mews.harness.commands.help_layout import LIVE_WORDS
from mews.harness.commands.named import run_command
from mews.kube.system.command import Command, CommandContext

NAME = "live"


class LiveCommand(Command, frozen=True):
    """The group: its help is the list of its commands."""

    overview: str = ""

    def help(self) -> str:
        """Return what ``--help`` prints."""
        examples = "".join(f"  {example}\n" for example in self.examples)
        return f"{self.overview}\nExamples:\n{examples}"


def live_group(every: Mapping[str, Command]) -> Command:
    """Return the group of those that act on a running ``mews up``, in the order in which it shows them."""
    commands = {name: every[name] for word in LIVE_WORDS for name in every if name.split()[0] == word}
    overview = _overview(commands)

    def run(words: Sequence[str], context: CommandContext) -> int:
        if not words:
            context.write(overview)
            return 0
        named = {name: command for name, command in commands.items() if name.split()[0] == words[0]}
        return run_command(named or commands, words)

    return LiveCommand(
        NAME,
        f"Run {', '.join(LIVE_WORDS[:-1])} or {LIVE_WORDS[-1]} on a running `mews up`.",
        run,
        "COMMAND [ARGS]...",
        passes_on=True,
        examples=("mews live status", "mews live fault list"),
        overview=overview,
    )


def _overview(commands: Mapping[str, Command]) -> str:
    width = max(map(len, commands))
    rows = "".join(f"  {name:{width}}  {command.summary}\n" for name, command in commands.items())
    return f"Usage: mews live COMMAND [ARGS]...\n\nCommands, each also without `live`:\n{rows}"
