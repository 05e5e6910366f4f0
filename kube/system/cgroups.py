"""Whose a process is, by the cgroup that the kernel accounts it to."""

from __future__ import annotations

import re

_POD = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")
"""Of a cgroup's path: the pod's uid, with underscores where systemd makes the names."""


def pod_of_cgroup(text: str) -> str:
    """Return the uid of the pod to which a process with that ``/proc/PID/cgroup`` belongs; "" for one of no pod."""
    found = _POD.search(text)
    return found[1].replace("_", "-") if found else ""
