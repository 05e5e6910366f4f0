"""Regular expressions as Go reads them, by google-re2: in linear time, whoever wrote the pattern."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

Matches = Callable[[str], bool]
"""Whether a text holds a match anywhere."""

_WORDS = (
    ("no argument for repetition operator", "missing argument to repetition operator"),
    ("bad repetition operator", "invalid nested repetition operator"),
    ("missing )", "missing closing )"),
    ("missing ]", "missing closing ]"),
    ("unexpected )", "unexpected )"),
    ("trailing \\", "trailing backslash at end of expression"),
    ("invalid character class range", "invalid character class range"),
    ("invalid character class", "invalid character class"),
    ("invalid escape sequence", "invalid escape sequence"),
    ("invalid perl operator", "invalid or unsupported Perl syntax"),
    ("invalid repetition size", "invalid repeat count"),
    ("bad repetition", "invalid repeat count"),
    ("invalid named capture group", "invalid named capture"),
    ("invalid UTF-8", "invalid UTF-8"),
    ("pattern too large", "expression too large"),
)


class PatternError(ValueError):
    """A pattern that Go does not compile; the text is Go's."""


@lru_cache(maxsize=4096)
def searcher(pattern: str) -> Any:
    """Return the compiled pattern: ``search`` and ``finditer`` as in ``re``.

    Raises ``PatternError``.
    """
    import re2  # Half a megabyte: most runs read no pattern of a stranger's.

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(_go_only(pattern), options=options)
    except re2.error as error:
        raise PatternError(_as_go(error.args[0] if error.args else str(error), pattern)) from None


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Matches:
    """Return the pattern as a question.

    Raises ``PatternError``.
    """
    search = searcher(pattern).search
    return lambda text: search(text) is not None


def _go_only(pattern: str) -> str:
    r"""Go knows no ``\C``."""
    if re.search(r"(?<!\\)(\\\\)*\\C", pattern):
        raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
    return pattern


def _as_go(text: str | bytes, pattern: str) -> str:
    """RE2's complaint in the words of Go's regexp."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    word, _, part = text.partition(": ")
    shown = next((go for re2_word, go in _WORDS if word.startswith(re2_word)), word)
    if shown in ("missing closing )", "unexpected )"):
        part = pattern
    if shown == "trailing backslash at end of expression":
        return f"error parsing regexp: {shown}: ``"
    return f"error parsing regexp: {shown}: `{part}`"
