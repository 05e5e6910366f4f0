"""The one place where parts of a node's GPUs are given away: a ConfigMap a node, written by compare-and-swap.

Two replicas of the extender, and the device plugin, may all want to give away the same memory. Each first writes its
promise into ``gpushare-ledger-<node>`` with the resourceVersion that it has read: of two, one is refused and looks
again. A promise names the resourceVersion of its pod, and the binding demands that version: once the pod has another,
the promise can never become a binding, and whoever looks may strike it out. No clock is involved, so no replica can be
too slow to be safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.errors import AlreadyExistsError, ConflictError, NotFoundError
from mews.kube.api.objects import (
    Object,
    is_terminal,
    key_of,
    name_of,
    namespace_of,
    node_name_of,
    uid_of,
    version_of,
)
from mews.kube.api.resources import CONFIGMAPS
from mews.kube.client.port import KubeApi
from mews.systems.gpushare.names import LEDGER_PREFIX
from mews.systems.gpushare.policy import GpuUse, SharedGpu, best_fit, free_memory, used_memory, without
from mews.systems.gpushare.records import (
    LedgerEntry,
    RecordedAnswer,
    assumption,
    ledger_data,
    ledger_entries,
    recorded_answers,
    withheld_gpus,
)

Stands = Callable[[LedgerEntry], Awaitable[bool]]
"""Whether a promise may still be, or become, a pod on that node. In doubt it stands."""

ATTEMPTS = 8
"""How often a decision is taken again because somebody else wrote in between."""


class SharedNode(Struct, frozen=True):
    """A node as a decision sees it: its GPUs, and the pods on it that have annotations."""

    node: str
    gpus: Sequence[SharedGpu]
    pods: Sequence[Object]


def stands(entry: LedgerEntry, pod: Object | None, node: str, seen: int) -> bool:
    """Return whether a promise stands, by what was seen of the pod of that name up to the version ``seen``."""
    if pod is None or uid_of(pod) != entry.uid:
        return seen < entry.version
    if version_of(pod) < entry.version:
        return True
    if is_terminal(pod):
        return False
    return node_name_of(pod) == node or (not node_name_of(pod) and version_of(pod) == entry.version)


def uses_of(pods: Iterable[Object], entries: Mapping[str, LedgerEntry]) -> list[GpuUse]:
    """Return what live pods use by their annotations, and by the ledger, which has the last word: of two pods whose
    GPUs are exchanged, one annotation is always written before the other. Pods that have ended use nothing."""
    found: dict[str, GpuUse] = {uid: entry.use() for uid, entry in entries.items()}
    for pod in pods:
        decision = assumption(pod)
        if is_terminal(pod):
            found.pop(uid_of(pod), None)
        elif decision is not None:
            found.setdefault(uid_of(pod), GpuUse(key_of(pod), decision.index, decision.uuid, decision.memory))
    return [found[uid] for uid in sorted(found)]


class NodeLedgers:
    """The ledgers of all nodes, through one client; ``cached`` is the newest ConfigMap that an informer has of a node,
    or None."""

    def __init__(
        self, kube: KubeApi, namespace: str, cached: Callable[[str], Object | None] = lambda node: None
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._cached = cached
        self._written: dict[str, Object] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def lock(self, node: str) -> asyncio.Lock:
        """Return one decision at a time for each node."""
        return self._locks.setdefault(node, asyncio.Lock())

    def entries(self, node: str) -> dict[str, LedgerEntry]:
        """Return what is known of the ledger without asking."""
        return ledger_entries(self._known(node))

    def withheld(self, node: str) -> frozenset[str]:
        """UUIDs of the GPUs of which nothing is promised any more, as far as is known without asking."""
        return withheld_gpus(self._known(node))

    def _known(self, node: str) -> Object | None:
        both = [found for found in (self._cached(node), self._written.get(node)) if found is not None]
        return max(both, key=version_of, default=None)

    async def read(self, node: str) -> Object | None:
        """Ask for it; None where there is none yet."""
        try:
            self._written[node] = await self._kube.get(CONFIGMAPS, f"{LEDGER_PREFIX}{node}", namespace=self._namespace)
        except NotFoundError:
            self._written.pop(node, None)
        return self._written.get(node)

    async def promise(self, pod: Object, memory: int, sharing: SharedNode, stand: Stands) -> SharedGpu | None:
        """Write down that the pod is to have that much of the GPU that fits it best, and say which; None where none
        has room, and nothing is written.

        Raises ConflictError where somebody else has written in between: call ``read`` and look again. ApiError,
        Unavailable.
        """
        ledger = self._known(sharing.node)
        entries = {uid: entry for uid, entry in ledger_entries(ledger).items() if await stand(entry)}
        entries.pop(uid_of(pod), None)
        others = [other for other in sharing.pods if uid_of(other) != uid_of(pod)]
        gpus = without(sharing.gpus, withheld_gpus(ledger))
        used = used_memory(gpus, uses_of(others, entries))
        gpu = best_fit(memory, gpus, free_memory(gpus, used))
        if gpu is None:
            return None
        entries[uid_of(pod)] = LedgerEntry(
            uid_of(pod), namespace_of(pod), name_of(pod), gpu.index, gpu.uuid, memory, version_of(pod)
        )
        await self._write(sharing.node, ledger, entries)
        return gpu

    async def update(
        self,
        node: str,
        seen: Object | None,
        changes: Mapping[str, LedgerEntry | None],
        answers: Mapping[str, RecordedAnswer] | None = None,
    ) -> None:
        """Write down that pods (by uid) have other GPUs than those promised to them, or None any more; and ``answers``
        to Allocate, and no others. Both follow from the ledger as it was ``seen``. Sums per GPU are the caller's
        business.

        Raises ConflictError where it is another by now: call ``read`` and look again. ApiError, Unavailable.
        """
        entries = ledger_entries(seen)
        changed = dict(entries)
        for uid, entry in changes.items():
            if entry is None:
                changed.pop(uid, None)
            elif uid not in entries or entries[uid].uuid != entry.uuid:
                changed[uid] = entry
        if changed != entries or (answers is not None and answers != recorded_answers(seen)):
            await self._write(node, seen, changed, answers=answers)

    async def withhold(self, node: str, uuids: frozenset[str]) -> None:
        """Write down that nothing is promised of these GPUs, and of no others: whoever promises later has seen it.

        Raises ConflictError: call ``read`` and do it again. ApiError, Unavailable.
        """
        ledger = self._known(node)
        if withheld_gpus(ledger) != uuids:
            await self._write(node, ledger, ledger_entries(ledger), uuids)

    async def withdraw(self, pod_uid: str, node: str) -> None:
        """Strike a promise out that came to nothing; another's write is left to strike it out later.

        Raises ApiError, UnavailableError.
        """
        ledger = self._known(node)
        entries = ledger_entries(ledger)
        if entries.pop(pod_uid, None) is None:
            return
        try:
            await self._write(node, ledger, entries)
        except ConflictError:
            return

    async def _write(
        self,
        node: str,
        ledger: Object | None,
        entries: Mapping[str, LedgerEntry],
        withheld: frozenset[str] | None = None,
        answers: Mapping[str, RecordedAnswer] | None = None,
    ) -> None:
        """``withheld``, ``answers``: None leaves them as they are."""
        metadata: dict[str, Any] = {"name": f"{LEDGER_PREFIX}{node}", "namespace": self._namespace}
        data = ledger_data(
            entries,
            withheld_gpus(ledger) if withheld is None else withheld,
            recorded_answers(ledger) if answers is None else answers,
        )
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        if ledger is None:
            try:
                written = await self._kube.create(CONFIGMAPS, {**body, "metadata": metadata}, namespace=self._namespace)
            except AlreadyExistsError as there:
                raise ConflictError(str(there)) from there
        else:
            metadata["resourceVersion"] = ledger["metadata"]["resourceVersion"]
            try:
                written = await self._kube.replace(
                    CONFIGMAPS, {**body, "metadata": metadata}, namespace=self._namespace
                )
            except NotFoundError as gone:
                self._written.pop(node, None)
                raise ConflictError(str(gone)) from gone
        self._written[node] = written
