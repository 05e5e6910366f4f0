"""Errors that the command line turns into an exit code and one line.

::

    BadInputError       2: a file, an option or a value is wrong; the line says where, what, and what is allowed
    RequirementError    3: this machine or this version lacks something; the line says what and how to get it
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mews.old_names import renamed

__getattr__ = renamed(__name__, {"BadInput": "BadInputError", "Lacks": "RequirementError"})

EXIT_CODES: Mapping[int, str] = MappingProxyType(
    {
        0: "passed, or done",
        1: "something that was judged failed: a scenario, a clause, a step",
        2: "bad input: one line says the file, the place, the value, and what is allowed",
        3: "this machine or this version lacks something: one line says what, and how to get it",
        4: "nothing that was judged failed, and not all could be judged: `mews conform` lists what",
        130: "interrupted",
        141: "the reader of standard output has gone",
    }
)
"""Of every command, but for those that run another program: they end as that does."""


class BadInputError(Exception):
    """What the user gave cannot be used."""


class RequirementError(Exception):
    """What the user asked for cannot be had here."""


def unreadable(path: Path | str, error: OSError | UnicodeDecodeError) -> str:
    """Return the line for a text file that cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return f"{path}: not a text file in UTF-8"
    return f"{path}: cannot be read: {error.strerror or error}"
