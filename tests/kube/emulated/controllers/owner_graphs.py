"""Graphs of owners by seed: objects that own each other in any way (circles too), some held by finalizers, deleted one
after another under each policy. What is left of them after each deletion is compared between our garbage collector and
kube-controller-manager's."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mews.kube.api.errors import ConflictError, NotFoundError
from mews.kube.api.objects import Object, is_deleting, name_of
from mews.kube.api.resources import CONFIGMAPS
from mews.kube.client.port import DeleteOptions
from tests.kube.emulated.controllers.staging import Stage

HOLD = "mews.io/held"
SETTLED_S = 4.0
"""Longer than what either collector takes for a graph of this size."""
POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True)
class OwnerGraph:
    """``owners``: by name of the object those of its owners, each with blockOwnerDeletion (None: not written)."""

    seed: int
    owners: Mapping[str, Sequence[tuple[str, bool | None]]]
    held: frozenset[str]
    deletions: Sequence[tuple[str, str]]

    @property
    def __name__(self) -> str:
        """The story's title, and its namespace."""
        return f"owners-{self.seed}"

    async def __call__(self, stage: Stage) -> None:
        """Make it, delete from it, let go of what is held; note what is left each time."""
        made = {name: await stage.make(CONFIGMAPS, name) for name in self.owners}
        for name, owners in self.owners.items():
            await stage.change(CONFIGMAPS, name, {"metadata": self._metadata(name, owners, made)})
        await self._settle(stage, "made")
        for name, policy in self.deletions:
            try:
                options = DeleteOptions(propagation=policy)
                await stage.kube.delete(CONFIGMAPS, name, namespace=stage.namespace, options=options)
            except NotFoundError:
                continue
            await self._settle(stage, f"{name} deleted: {policy}")
        while held := [obj for obj in await self._all(stage) if HOLD in (obj["metadata"].get("finalizers") or ())]:
            for obj in held:
                await self._release(stage, obj)
        await self._settle(stage, "let go")

    def _metadata(self, name: str, owners: Sequence[tuple[str, bool | None]], made: Mapping[str, Object]) -> Any:
        references = []
        for owner, blocks in owners:
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": made[owner]["metadata"]["uid"]}
            references.append(reference if blocks is None else {**reference, "blockOwnerDeletion": blocks})
        return {"ownerReferences": references or None, "finalizers": [HOLD] if name in self.held else None}

    async def _release(self, stage: Stage, obj: Object) -> None:
        metadata = obj["metadata"]
        kept = [held for held in metadata["finalizers"] if held != HOLD]
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": kept or None}}
        try:
            await stage.change(CONFIGMAPS, name_of(obj), body)
        except (NotFoundError, ConflictError):
            return  # the collector was faster

    async def _all(self, stage: Stage) -> list[Object]:
        return [obj for obj in await stage.all(CONFIGMAPS) if name_of(obj) in self.owners]

    async def _settle(self, stage: Stage, what: str) -> None:
        await asyncio.sleep(SETTLED_S)
        stage.seen.append((what, sorted(_plain(obj) for obj in await self._all(stage))))


def _plain(obj: Object) -> str:
    owners = [(o["name"], o.get("blockOwnerDeletion")) for o in obj["metadata"].get("ownerReferences") or ()]
    return f"{name_of(obj)} {is_deleting(obj)} {obj['metadata'].get('finalizers')} {owners}"


def owner_graph(seed: int) -> OwnerGraph:
    """Two to six objects; every edge as likely as not where there are few."""
    rng = random.Random(f"owner-graph/{seed}")
    names = [chr(ord("a") + number) for number in range(rng.randint(2, 6))]
    share = rng.choice((0.2, 0.35, 0.5))
    owners = {
        name: [(o, rng.choice((True, True, False, None))) for o in names if rng.random() < share and o != name]
        for name in names
    }
    held = frozenset(name for name in names if rng.random() < 0.2)
    deletions = [(rng.choice(names), rng.choice(POLICIES)) for _ in range(rng.randint(1, 3))]
    return OwnerGraph(seed, owners, held, deletions)
