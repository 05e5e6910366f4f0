"""Our traces in somebody's cluster: written down before they are made, and removed without a rest.

A folder in the user's state says which cluster has which namespaces of ours; a run that was killed, or told to keep
them, leaves it without a living owner, and ``mews down`` removes both."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mews.harness.clusters.kubeconfig.ground import assigned, find_place
from mews.harness.clusters.real.access import Gate
from mews.harness.clusters.real.ground import Place
from mews.harness.clusters.real.rewriting import RUN
from mews.harness.errors import Lacks
from mews.harness.leftovers import SITE_FILE, Owned, kept_sites, site_state
from mews.harness.manifests.kinds import KINDS
from mews.harness.manifests.rights import EVERYWHERE
from mews.kube.api.errors import ApiError, NotFound, Unavailable
from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.api.resources import NAMESPACES, NODES
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest

_GONE_S = 90.0


class Site:
    """One cluster over several scenarios; ``keep``: what was made there stays."""

    def __init__(
        self, kubeconfig: Path | None, context: str | None, *, keep: bool, tell: Callable[[str], None]
    ) -> None:
        self._kubeconfig = kubeconfig.absolute() if kubeconfig is not None else None
        self._context = context
        self._keep = keep
        self._tell = tell
        self._owned: Owned | None = None
        self._place: Place | None = None

    async def place(self, hosts: Sequence[str]) -> Place:
        """Where the stack goes; the nodes are looked up anew for each scenario's hosts.

        Raises Lacks.
        """
        if self._place is None:
            self._place = await find_place(self._kubeconfig, self._context, hosts)
            self._note(self._place)
        gate = Gate(self._place)
        try:
            nodes: Sequence[Object] = (await gate.kube("place").list(NODES)).items
        except (ApiError, Unavailable) as error:
            raise Lacks(f"--cluster kubeconfig: the cluster cannot be asked for its nodes: {error}") from error
        finally:
            await gate.close()
        return replace(self._place, nodes=assigned(nodes, hosts))

    def _note(self, place: Place) -> None:
        folder = site_state() / place.namespace
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._owned = Owned(folder)
        known = {
            "kubeconfig": None if place.kubeconfig is None else str(place.kubeconfig),
            "context": place.context,
            "namespaces": [place.namespace, *place.namespaces.values()],
            "prefix": place.prefix,
        }
        (folder / SITE_FILE).write_text(json.dumps(known), encoding="utf-8")

    def close(self) -> None:
        """Remove all that was made, unless it is to be kept. Raises Lacks where that fails; `mews down` tries again."""
        owned, self._owned = self._owned, None
        if owned is None:
            return
        if self._keep:
            owned.abandon()
            return
        self._tell("removing what was made in the cluster")
        purge(owned.folder)
        owned.release()


def purge(folder: Path) -> None:
    """Remove what the record in that folder says.

    Raises Lacks where the cluster does not let us.
    """
    try:
        known = json.loads((folder / SITE_FILE).read_text(encoding="utf-8"))
        kubeconfig = None if known["kubeconfig"] is None else Path(known["kubeconfig"])
        place = Place(kubeconfig, known["context"], known["namespaces"][0], "", {}, prefix=str(known["prefix"]))
        namespaces = [str(name) for name in known["namespaces"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise Lacks(f"{folder}: cannot be read: {error}") from error
    asyncio.run(_purge(place, namespaces))


async def _purge(place: Place, namespaces: Sequence[str]) -> None:
    gate = Gate(place)
    kube = gate.kube("purge")
    try:
        namespaces = [*namespaces, *await _sweep(kube, place, namespaces)]
        for name in namespaces:
            with contextlib.suppress(NotFound):
                await kube.delete(NAMESPACES, name)
        for component in EVERYWHERE:
            for kind in ("ClusterRoleBinding", "ClusterRole"):
                with contextlib.suppress(NotFound):
                    await kube.delete(KINDS[kind], f"{place.prefix}{component}")
        deadline = asyncio.get_running_loop().time() + _GONE_S
        for name in namespaces:
            with contextlib.suppress(NotFound):
                while asyncio.get_running_loop().time() < deadline:
                    await kube.get(NAMESPACES, name)
                    await rest(0.25)
    except (ApiError, Unavailable) as error:
        raise Lacks(
            f"namespaces {', '.join(namespaces)} could not be removed: {error}; mews down tries again"
        ) from error
    finally:
        await gate.close()


async def _sweep(kube: KubeApi, place: Place, besides: Sequence[str]) -> list[str]:
    """Delete what scenarios created outside those namespaces; the namespaces among it are returned."""
    found = []
    for resource in await kube.discovery():
        try:
            marked = (await kube.list(resource, label_selector=f"{RUN}={place.namespace}")).items
        except ApiError:
            continue  # it has no list, or not for us
        for obj in marked:
            if resource == NAMESPACES:
                found.append(name_of(obj))
            elif namespace_of(obj) not in besides:
                with contextlib.suppress(NotFound):
                    await kube.delete(resource, name_of(obj), namespace=namespace_of(obj) or None)
    return found


def sweep_sites() -> list[Path]:
    """Remove what ended runs left in clusters; returns the folders of those where that worked."""
    gone = []
    for folder in kept_sites():
        try:
            purge(folder)
        except Lacks:
            continue
        Owned(folder).release()
        gone.append(folder)
    return gone
