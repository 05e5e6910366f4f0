"""What the commands on a running ``mews up`` have in common: ``--name``, and the session that answers to it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from mews.harness.commands.instances import running
from mews.harness.live.client import NotAnsweringError, SessionClient, session_of
from mews.kube.system.command import CommandContext

NAME = "[--name NAME]"
NAMED = {"--name NAME": "use the session of this name; default: mews"}


class ArgumentWords(argparse.ArgumentParser):
    """Words after a command's name; what is wrong with them is a ValueError in one line. All have ``--name``."""

    def __init__(self, prog: str, *, allow_abbrev: bool = False) -> None:
        super().__init__(prog=f"mews {prog}", add_help=False, allow_abbrev=allow_abbrev)
        self.add_argument("--name", default="mews")

    def error(self, message: str) -> Any:
        """Return it as argparse calls it."""
        raise ValueError(message)


def as_values(words: Sequence[str], options: Collection[str]) -> list[str]:
    """``--count 1`` and ``--count=1`` as ``count=1`` at the end, but for a command's own options: what a fault takes is
    typed as an option by everybody who has not read how."""
    found, values = list[str](), list[str]()
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not name.startswith("--") or name in options:
            found.append(word)
            continue
        following = value if equals else next(rest, "")
        values.append(f"{name[2:].replace('-', '_')}={following}")
    return found + values


def values_of(words: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE: a JSON value, else the text as it stands (000100 is a device's ID, and no number).

    Raises ValueError.
    """
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise ValueError(f"{word!r}: must be NAME=VALUE")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


def client_of(name: str) -> SessionClient:
    """Return that of the running session of that name.

    Raises BadInputError where none runs, LookupError, in one line, where it is not up yet.
    """
    instance = running(name)
    try:
        return SessionClient(session_of(Path(instance.folder)))
    except NotAnsweringError as error:
        raise LookupError(str(error)) from error


def answered(run: Callable[[Sequence[str], CommandContext], int]) -> Callable[[Sequence[str], CommandContext], int]:
    """Return a session that does not answer is what the environment lacks."""

    def wrapped(words: Sequence[str], context: CommandContext) -> int:
        try:
            return run(words, context)
        except NotAnsweringError as error:
            raise LookupError(str(error)) from error

    return wrapped
