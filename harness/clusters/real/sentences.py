"""What schedulers say of a cluster that has more nodes than the scenario knows of."""

from __future__ import annotations

import re

_COUNT = re.compile(r"\b(\d+)/(\d+) nodes are available: ")
_STRANGE = ("node-role.kubernetes.io/control-plane", "were unschedulable", "node.kubernetes.io/unschedulable")


def without_strangers(text: str, hosts: int) -> str:
    """``0/4 nodes are available: 1 node(s) had untolerated taint {…control-plane: }, 3 Insufficient cpu.`` as the
    scenario's author sees it on three hosts: ``0/3 nodes are available: 3 Insufficient cpu.``

    Strange are the control plane's node and those that are cordoned; other sentences are left as they are.
    """
    found = _COUNT.search(text)
    if found is None or int(found[2]) <= hosts:
        return text
    strangers = int(found[2]) - hosts
    head, tail = text[: found.start()], text[found.end() :]
    clauses, _, more = tail.partition(". ")
    kept = [clause for clause in clauses.rstrip(".").split(", ") if not _strange(clause, strangers)]
    said = f"{head}{found[1]}/{hosts} nodes are available: {', '.join(kept)}."
    return said + (f" {more}" if more else "")


def _strange(clause: str, most: int) -> bool:
    number = clause.partition(" ")[0]
    return number.isdecimal() and int(number) <= most and any(word in clause for word in _STRANGE)
