"""Words after a command's name, for commands that are found by name."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


class FailingParser(argparse.ArgumentParser):
    """What is wrong with the words is a ValueError, in one line."""

    def __init__(self, command: str) -> None:
        super().__init__(prog=f"mews {command}", add_help=False, allow_abbrev=False)

    def error(self, message: str) -> Any:
        """Return it as argparse calls it."""
        raise ValueError(message)


def at_least(least: int) -> Callable[[str], int]:
    """Return the type of a whole number that is no less."""

    def whole_number(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text}: must be a whole number of at least {least}")
        return int(text)

    return whole_number
