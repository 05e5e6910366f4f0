"""A sub-command that a system adds to ``mews``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field


class CommandContext(Struct, frozen=True):
    """What a sub-command is given: ``write`` puts text on standard output; ``kubeconfig(name)`` is the kubeconfig of
    the running ``mews up --name NAME`` (where none runs, it raises what ends the command with exit code 2)."""

    write: Callable[[str], object]
    kubeconfig: Callable[[str], Path]


class Command(Struct, frozen=True):
    """``mews NAME ARGUMENTS…``. ``name`` is one word or several (``inspect gpushare``); ``usage`` shows the arguments;
    ``run(arguments, context)`` gets the words after the name and returns the exit code (0 done, 1 failed). It raises
    ValueError, in one line with what is allowed, for bad arguments. With ``passes_on`` the words are mostly those of
    another program: ``--help`` is this command's only as the first of them. ``options``: each option as it is typed ->
    what it does, and ``examples``: command lines; ``--help`` and the reference show both."""

    name: str
    summary: str
    run: Callable[[Sequence[str], CommandContext], int]
    usage: str = ""
    passes_on: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    def help(self) -> str:
        """Return what ``--help`` prints."""
        parts = [f"Usage: mews {self.name} {self.usage}".rstrip(), f"  {self.summary}"]
        if self.options:
            width = max(map(len, self.options))
            rows = (f"  {option.ljust(width)}  {text}" for option, text in self.options.items())
            parts.append("Options:\n" + "\n".join(rows))
        if self.examples:
            parts.append("Examples:\n" + "\n".join(f"  {example}" for example in self.examples))
        return "\n\n".join(parts) + "\n"
