"""Every command with every option, from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import typer.main

from ci.reference.markdown import code, line, paragraphs, table, words
from mews.harness import cli
from mews.harness.commands.further import all_commands
from mews.harness.commands.help_layout import EXAMPLES


def page() -> str:
    """Return the options of all, then each command."""
    group: Any = typer.main.get_command(cli.app)
    own = [_typed(name, command) for name, command in group.commands.items()]
    return paragraphs(
        "# Commands",
        words(str(group.help or "")),
        "`mews COMMAND --help` prints the same for one command. [Exit codes](exit-codes.md) are the same for all.",
        "## Options of all commands",
        "They stand before the command: `mews -q run demo`.",
        table(("option", "what it does"), [(shown(each), each.help or "") for each in options(group)]),
        *own,
        *further(),
    )


def options(command: Any) -> list[Any]:
    """Return what may follow it, --help left out: it is the same everywhere."""
    return [each for each in command.params if each.param_type_name == "option" and each.name != "help"]


def shown(option: Any) -> str:
    """Return it as it is typed."""
    metavar = "" if option.is_flag else f" {option.metavar or 'VALUE'}"
    return code(", ".join((*option.opts, *option.secondary_opts)) + metavar)


def _typed(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join(f"{each.metavar or each.name.upper()}" for each in arguments)
    rows = [(shown(each), _default(each), each.help or "") for each in options(command)]
    rows = [(code(each.metavar or each.name.upper()), "", each.help or "") for each in arguments] + rows
    return paragraphs(
        f"## mews {name}",
        words(str(command.help or "")),
        f"```text\nmews {name} {'[OPTIONS] ' if rows else ''}{usage}".rstrip() + "\n```",
        table(("option", "default", "what it does"), rows),
        _examples(EXAMPLES.get(name, ())),
    )


def _default(option: Any) -> str:
    """Return it as it is typed; "" for what is off or left out without it."""
    default = option.default
    return (
        code(f"{default:g}" if isinstance(default, float) else default)
        if isinstance(default, str | int | float) and default
        else ""
    )


def _examples(lines: Sequence[str]) -> str:
    return "```text\n" + "\n".join(lines) + "\n```" if lines else ""


def further() -> Iterator[str]:
    """Yield those that are looked up by name."""
    for name, command in all_commands().items():
        rows = [(code(option), text) for option, text in command.options.items()]
        yield paragraphs(
            f"## mews {name}",
            line(command.summary),
            f"```text\nmews {name} {command.usage}".rstrip() + "\n```",
            table(("option", "what it does"), rows),
            _examples(command.examples),
        )
