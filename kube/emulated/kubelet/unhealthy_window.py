"""When a simulated container answers badly: what the pod's annotation ``mews.dev/failing`` says. Pure.

``readiness:0-10, proxy/liveness:60-``: readiness fails in the first ten seconds after each start, and liveness of the
container ``proxy`` from its sixtieth second on. Hooks too: ``preStop``, ``postStart:0-``.
"""

from __future__ import annotations

import math
import re

from msgspec import Struct

from mews.kube.emulated.kubelet.errors import StartError

FAILING = "mews.dev/failing"
PURPOSES = ("liveness", "readiness", "startup", "postStart", "preStop")
_ENTRY = re.compile(rf"(?:([^/:,]+)/)?({'|'.join(PURPOSES)})(?::(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)?)?")


class UnhealthyWindow(Struct, frozen=True):
    """A time in which a simulated container fails one kind of probe or hook: from ``since_s`` to ``until_s`` after
    its start."""

    purpose: str
    since_s: float = 0.0
    until_s: float = math.inf

    def covers(self, purpose: str, age_s: float) -> bool:
        """Return whether probes or hooks of this purpose fail in a container that started ``age_s`` seconds ago."""
        return purpose == self.purpose and self.since_s <= age_s < self.until_s


def illnesses_of(text: str, container: str) -> tuple[UnhealthyWindow, ...]:
    """Return what the annotation says of a container.

    Raises StartError naming what is allowed.
    """
    found = []
    for entry in (part.strip() for part in text.split(",") if part.strip()):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise StartError(
                "RunContainerError",
                f"annotation {FAILING}: {entry!r}: must read [container/]PURPOSE[:FROM-[TO]], in seconds, with PURPOSE "
                f"one of {', '.join(PURPOSES)}",
            )
        named, purpose, since, until = match.groups()
        if named in (None, container):
            found.append(UnhealthyWindow(purpose, float(since or 0), float(until) if until else math.inf))
    return tuple(found)
