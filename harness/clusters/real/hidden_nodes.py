"""Nodes of a real cluster that are no hosts of the scenario: the control plane's, and those that are cordoned because
the scenario has fewer hosts than another one. Its author knows nothing of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object, name_of
from mews.kube.api.resources import EVENTS, NODES, Resource

_COUNT = re.compile(r"\b(\d+)/(\d+) nodes are available: (.*?)(?=\.(?: |$))")
_CORDONED = ("were unschedulable",)
_TAINTED = ("had untolerated taint",)
_NOT_HELPED, _NO_VICTIMS = ("Preemption is not helpful",), ("No preemption victims",)


class HiddenNodes:
    """``hosts``: the nodes that are hosts; ``cordoned``: how many others are closed."""

    def __init__(self, hosts: Collection[str], cordoned: int = 0) -> None:
        self._hosts = frozenset(hosts)
        self._cordoned = cordoned

    def hides(self, resource: Resource, obj: Object) -> bool:
        """Return whether it is such a node, or an event about one."""
        if resource == NODES:
            return name_of(obj) not in self._hosts
        about = obj.get("involvedObject") or {}
        return resource == EVENTS and about.get("kind") == "Node" and about.get("name") not in self._hosts

    def shown(self, obj: Object) -> Object:
        """Return an event, or a pod, without them in what schedulers say; all else as it is."""
        if "involvedObject" in obj and "nodes are available" in str(obj.get("message") or ""):
            return {**obj, "message": self.plain(obj["message"])}
        status = obj.get("status") or {}
        conditions = status.get("conditions") if isinstance(status, Mapping) else None
        if not any(each.get("reason") == "Unschedulable" for each in conditions or ()):
            return obj
        return {**obj, "status": {**status, "conditions": [self._condition(each) for each in conditions or ()]}}

    def _condition(self, condition: Mapping[str, Any]) -> Mapping[str, Any]:
        if condition.get("reason") != "Unschedulable":
            return condition
        return {**condition, "message": self.plain(str(condition.get("message") or ""))}

    def plain(self, text: str) -> str:
        """``0/5 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 3 Insufficient
        cpu.`` as the scenario's author sees it on three hosts: ``0/3 nodes are available: 3 Insufficient cpu.`` (texts:
        contract apiserver.md section 8)."""
        return _COUNT.sub(self._recounted, text)

    def _recounted(self, found: re.Match[str]) -> str:
        strangers = int(found[2]) - len(self._hosts)
        if strangers <= 0:
            return found[0]
        clauses = found[3].split(", ")
        closed = min(self._cordoned, strangers)
        unhelped = sum(
            int(each.partition(" ")[0]) for each in clauses if _NOT_HELPED[0] in each and each[:1].isdecimal()
        )
        counted = ((_CORDONED, closed), (_TAINTED, strangers - closed), (_NOT_HELPED, strangers))
        for words, number in (*counted, (_NO_VICTIMS, max(strangers - unhelped, 0))):
            clauses = list(_fewer(clauses, words, number))
        if all(clause[:1].isdecimal() for clause in clauses):
            clauses.sort()
        return f"{found[1]}/{len(self._hosts)} nodes are available: {', '.join(clauses)}"


def _fewer(clauses: Collection[str], words: Collection[str], number: int) -> Iterator[str]:
    """Yield the clauses, with so many nodes fewer in those that have one of these words; no clause is of no node."""
    for clause in clauses:
        count, _, clause_text = clause.partition(" ")
        if not count.isdecimal() or not any(word in clause_text for word in words):
            yield clause
            continue
        taken = min(int(count), number)
        number -= taken
        if int(count) > taken:
            yield f"{int(count) - taken} {clause_text}"
