"""Sub-commands beside those of ``mews.harness.cli``: further ones of ours, and those that systems add. They are
loaded for a command that is none of the command line's own, and for --help."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from mews.harness.commands.help_layout import COMMAND_PANELS, GROUPS, LIVE_WORDS, write_options
from mews.harness.commands.named import run_command
from mews.harness.errors import BadInputError
from mews.names import did_you_mean
from mews.project import DOCUMENTATION

NESTED = {("manifests", "sweep")}
"""Looked up by both words, so that no other command waits for all of them to be loaded."""


class MewsGroup(TyperGroup):
    """The commands of ``mews``: the harness's own, then those of systems."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names, systems' last; of a name of several words the first."""
        from mews.harness.commands.further import all_commands

        own = super().list_commands(ctx)
        return [*own, *dict.fromkeys(word for name in all_commands() if (word := name.split()[0]) not in own)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options of all commands, then the commands."""
        write_options(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Where to read more."""
        with formatter.section("Documentation"):
            formatter.write(f"{'':{formatter.current_indent}}{DOCUMENTATION}\n")

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """By what they are for."""
        names = self.list_commands(ctx)
        grouped = {*LIVE_WORDS, *(name for panel in COMMAND_PANELS.values() for name in panel)}
        left = [name for name in names if name not in grouped]
        for title, panel in {**COMMAND_PANELS, "More": left}.items():
            shown = [(name, self._summary(ctx, name)) for name in panel if name in names]
            if shown:
                with formatter.section(title):
                    formatter.write_dl(shown)

    def _summary(self, ctx: Any, name: str) -> str:
        command = self.get_command(ctx, name)
        return str(command.help or "").partition("\n\n")[0].replace("\n", " ")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return a command of two words of which our own command line has the first: found before that."""
        if tuple(args[:2]) in NESTED:
            return args[0], _command_of_systems(args[0]), args[1:]
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            raise BadInputError(f"mews {args[0]}: no such command{did_you_mean(args[0], names)}; see mews --help")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name, or None."""
        return super().get_command(ctx, cmd_name) or _command_of_systems(cmd_name)


def _command_of_systems(word: str) -> Any:
    """Return the command that begins with that word, as typer has them, or None."""
    from mews.harness.commands.further import all_commands

    commands = {name: command for name, command in all_commands().items() if name.split()[0] == word}
    if not commands:
        return None
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    help_text = GROUPS.get(word) or " ".join(command.summary for command in commands.values())
    usage = " | ".join(filter(None, (command.usage for command in commands.values())))

    @app.command(word, context_settings=settings, help=help_text, options_metavar=usage)
    def run(context: typer.Context) -> int:
        return run_command(commands, [word, *context.args])

    return typer.main.get_command(app)
