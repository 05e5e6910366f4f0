"""What typer complains about, in our words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_TYPER_WORDS: Mapping[str, str] = MappingProxyType(
    {
        r"Got unexpected extra arguments? \((.*)\)": r"\1: takes no such argument",
        r"Got unexpected extra argument\(s\) \((.*)\)": r"\1: takes no such argument",
        r"Missing argument '(.*)'\.": r"\1: missing",
        r"No such option: (\S+) \(Possible options: (.*)\)": r"\1: no such option (did you mean \2?)",
        r"No such option: (\S+) Did you mean (.*)\?": r"\1: no such option (did you mean \2?)",
        r"No such option: (\S+)\.?": r"\1: no such option",
        r"Option '(.*)' requires an argument\.": r"\1: requires a value",
        r"Missing option '(.*)'\.": r"\1: missing",
    }
)
"""Pattern of a message of typer's -> ours."""


def usage(error: Exception) -> str:
    """Return one line about a command line that typer refuses: the command, what was given, and what is allowed."""
    message = str(getattr(error, "format_message", error.__str__)()).strip()
    context = getattr(error, "ctx", None)
    path = f"{context.command_path}: " if context is not None else ""
    if (value := _value(error)) is not None:
        return f"{path}{value}"
    for pattern, words in _TYPER_WORDS.items():
        message, found = re.subn(pattern, words, message)
        if found:
            break
    return f"{path}{message}" if message else "no command given; see mews --help"


def _value(error: Exception) -> str | None:
    """Return the line about a value of an option; typer has pydantic read them, and hands on its words."""
    complaints: Any = getattr(error.__cause__, "errors", None)
    parameter = getattr(error, "param", None)
    if complaints is None or parameter is None:
        return None

    from mews.harness.scenario.complaints import worded

    complaint = complaints(include_url=False)[0]
    name = max(parameter.opts, key=len) if parameter.opts[0].startswith("-") else parameter.make_metavar()
    return f"{name} {complaint['input']}: {worded(complaint)}"
