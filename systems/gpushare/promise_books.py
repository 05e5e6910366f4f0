"""Pods and ledgers as the lines of a run's journal show them: what GPU Share's laws look at. A reducer."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from mews.kube.system.invariant import LineBook
from mews.kube.system.journal import Line
from mews.systems.gpushare import names
from mews.systems.gpushare.journal import PROMISES

_POD_EVENTS = (("api", "created"), ("api", "bound"), ("api", "annotations"), ("api", "phase"), ("api", "deleted"))
_ENDS = ("Succeeded", "Failed")


class Promise(Struct, frozen=True):
    """A part of a GPU that a node's ledger gives away, with the line that made it."""

    pod: str
    node: str
    gpu: str
    memory: int
    line: Line


class PromisedPod(Struct):
    """A pod by its lines: that of its creation, its binding, and its end; None before them."""

    created: Line
    bound: Line | None = None
    over: Line | None = None
    gone: bool = False

    @property
    def given(self) -> bool:
        """Whether it came with its annotations, so that none of ours made them."""
        return names.INDEX in self.created.fields.get("annotated", ())


class PromiseBooks(LineBook):
    """Pods and ledgers, as the lines tell of them; one for all laws of a run, whichever of them is given a line first.

    ``before``: what was promised, before the last write of a ledger, to the pods (uid) that it made or struck.
    """

    events = frozenset({("api", PROMISES), *_POD_EVENTS})

    def __init__(self) -> None:
        super().__init__()
        self.pods: dict[str, PromisedPod] = {}
        self.promises: dict[str, Promise] = {}
        self.before: dict[str, Promise | None] = {}

    def _book(self, line: Line) -> None:
        if line.event == PROMISES:
            self._ledger(line)
        elif line.actor.startswith("pod/"):
            self._pod(line)

    def _pod(self, line: Line) -> None:
        uid, fields = line.fields["uid"], line.fields
        if line.event == "created":
            self.pods[uid] = PromisedPod(line)
        pod = self.pods.get(uid)
        if pod is None:
            return  # it was there before the journal
        if line.event == "bound":
            pod.bound = line
        elif line.event == "deleted" or (line.event == "phase" and fields["phase"] in _ENDS):
            pod.over, pod.gone = pod.over or line, line.event == "deleted"
            self._forget(uid)

    def _ledger(self, line: Line) -> None:
        node, made = line.actor.partition("/")[2], line.fields["made"]
        struck = [uid for uid in line.fields["struck"] if uid in self.promises and self.promises[uid].node == node]
        gone = {uid: self.promises.pop(uid) for uid in struck}
        for uid in struck:
            self._forget(uid)
        self.before = {**gone, **{uid: self.promises.get(uid) for uid in made}}
        for uid, row in made.items():
            self.promises[uid] = Promise(row["pod"], node, row["gpu"], row["memory"], line)

    def _forget(self, uid: str) -> None:
        if uid not in self.promises and uid in self.pods and self.pods[uid].gone:
            del self.pods[uid]

    def sums(self, node: str) -> Mapping[str, list[Promise]]:
        """GPU -> what is promised of it to pods that are bound and have not ended."""
        found: dict[str, list[Promise]] = {}
        for uid, promise in self.promises.items():
            pod = self.pods.get(uid)
            if promise.node == node and pod is not None and pod.over is None and pod.bound is not None:
                found.setdefault(promise.gpu, []).append(promise)
        return found
