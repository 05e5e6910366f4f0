"""What commands print: the one place where text reaches a terminal.

Names, messages and logs come from whoever may create an object. Control characters in them would move the cursor, clear
the screen or reverse the order of a line; each is shown as ``\\uXXXX``, in JSON the same string. Colours of our own are
added behind this by rich.
"""

from __future__ import annotations

import io
import re
import sys

_JSON_CONTROLS = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([01][0-9a-f]|7f)")
"""As JSON writes them: after an odd number of backslashes."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 but tab and line feed, DEL, C1, line separators, and what changes the direction of text (UAX 9)."""


def escaped(text: str) -> str:
    """Return the text without control characters: each as ``\\uXXXX``."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escaped_json(text: str) -> str:
    """JSON whose strings show their control characters, as ``escaped`` does, where a page puts them as they are; an
    object's names are strings too."""
    shown = _JSON_CONTROLS.sub(r"\1\\\\u00\2", text)
    return _CONTROLS.sub(lambda found: f"\\\\u{ord(found[0]):04x}", shown)


def write_anything() -> None:
    """Let standard output have any character: where its encoding lacks one (a console of Windows, ``LC_ALL=C``) that is
    shown as ``\\uXXXX``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def out(text: str) -> None:
    """Write to standard output."""
    sys.stdout.write(escaped(text))


def err(text: str) -> None:
    """Write to standard error."""
    sys.stderr.write(escaped(text))
