"""How many files and connections a process may have open (RLIMIT_NOFILE), and what is done where these are too few.

A command that opens many asks for them first (``ensure_descriptors``). A server that can accept no connection goes on
with those that it has, and says so now and then (``Refusals``).
"""

from __future__ import annotations

import errno
import importlib
import logging
from collections.abc import Iterator
from typing import Any


def _limits() -> Any:
    """Return the module ``resource``; None on Windows, which has no such limit to ask for."""
    try:
        return importlib.import_module("resource")
    except ImportError:
        return None


resource = _limits()

PAUSE_S = 0.1
"""For which a server that can accept nothing lets the others work; the connection waits in the backlog."""
_REMINDED_S = 60.0

log = logging.getLogger(__name__)


class TooFewDescriptorsError(Exception):
    """One line: what is needed, what there is, and how to get more."""


def ensure_descriptors(what: str, needed: int) -> None:
    """See to it that this process may have so many open, up to the hard limit.

    Raises TooFewDescriptorsError.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _allows(soft, needed):
        return
    if not _allows(hard, needed):
        raise TooFewDescriptorsError(f"{what} needs {needed} open files; {_there()}: {_more(needed)}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def allowed_descriptors() -> int | None:
    """Return the most that this process may have open, up to the hard limit; None for no limit."""
    if resource is None:
        return None
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if hard == resource.RLIM_INFINITY else hard


def exhausted(error: BaseException | None) -> bool:
    """Return whether an error, or one that it comes from, is that no more files could be opened."""
    return any(isinstance(each, OSError) and each.errno in (errno.EMFILE, errno.ENFILE) for each in _sources(error))


def exhausted_line(what: str) -> str:
    """Return the line for a process that ran out of them."""
    if resource is None:
        return f"{what}: too many open files"
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"{what}: too many open files; {_there()}: {_more(max(4096, 4 * soft))}"


class Refusals:
    """What a server says of connections that it cannot accept: a line a minute."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._said_s: float | None = None

    def note(self, now_s: float) -> None:
        """One more could not be accepted."""
        if self._said_s is None or now_s - self._said_s >= _REMINDED_S:
            self._said_s = now_s
            log.warning("%s", exhausted_line(f"{self._where}: connections wait"))


def _allows(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed


def _there() -> str:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = "no hard limit" if hard == resource.RLIM_INFINITY else f"hard limit {hard}"
    return f"this process may have {soft} ({most})"


def _more(needed: int) -> str:
    return f"raise it by `ulimit -n {needed}`, or a container's `--ulimit nofile={needed}`"


def _sources(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, what is in its group, and what it came from; each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
