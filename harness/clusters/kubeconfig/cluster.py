"""Our traces in somebody's cluster: written down before they are made, and removed without a rest.

A folder in the user's state says which cluster has which namespaces of ours; a run that was killed, or told to keep
them, leaves it without a living owner, and ``mews down`` removes both."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from mews.harness.clusters.kubeconfig.target import assigned, find_target
from mews.harness.clusters.real.access import Gate
from mews.harness.clusters.real.rewriting import RUN
from mews.harness.clusters.real.systems import component_names
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.leftovers import SITE_FILE, RuntimeFolder, site_state
from mews.harness.manifests.kinds import KINDS
from mews.harness.manifests.rights import cluster_wide
from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.api.resources import NAMESPACES, NODES
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest
from mews.own_files import write_own

_GONE_S = 90.0


class KubeconfigCluster:
    """One cluster over several scenarios; ``keep``: what was made there stays."""

    def __init__(
        self, kubeconfig: Path | None, context: str | None, *, keep: bool, notify: Callable[[str], None]
    ) -> None:
        self._kubeconfig = kubeconfig.absolute() if kubeconfig is not None else None
        self._context = context
        self._keep = keep
        self._notify = notify
        self._owned: RuntimeFolder | None = None
        self._target: DeploymentTarget | None = None

    async def target(self, hosts: Sequence[str]) -> DeploymentTarget:
        """Return where the stack goes; the nodes are looked up anew for each scenario's hosts.

        Raises RequirementError.
        """
        if self._target is None:
            target = await find_target(self._kubeconfig, self._context, hosts)
            self._note(target)
            self._target = target
        gate = Gate(self._target)
        try:
            nodes: Sequence[Object] = (await gate.kube("place").list(NODES)).items
        except (ApiError, UnavailableError) as error:
            raise RequirementError(
                f"--cluster kubeconfig: the cluster cannot be asked for its nodes: {error}"
            ) from error
        finally:
            await gate.close()
        return replace(self._target, nodes=assigned(nodes, hosts))

    def _note(self, target: DeploymentTarget) -> None:
        self._owned = RuntimeFolder.below(site_state(), target.namespace)
        known = {
            "kubeconfig": None if target.kubeconfig is None else str(target.kubeconfig),
            "context": target.context,
            "namespaces": list(dict.fromkeys([target.namespace, *target.namespaces.values()])),
            "prefix": target.prefix,
        }
        write_own(self._owned.folder / SITE_FILE, json.dumps(known))

    def close(self) -> None:
        """Remove all that was made, unless it is to be kept. Raises RequirementError where that fails; `mews down`
        tries again."""
        owned, self._owned = self._owned, None
        if owned is None:
            return
        if self._keep:
            owned.abandon()
            return
        self._notify("removing what was made in the cluster")
        purge(owned.folder)
        owned.release()


def purge(folder: Path) -> None:
    """Remove what the record in that folder says.

    Raises RequirementError where the cluster does not let us.
    """
    try:
        known = json.loads((folder / SITE_FILE).read_text(encoding="utf-8"))
        kubeconfig = None if known["kubeconfig"] is None else Path(known["kubeconfig"])
        target = DeploymentTarget(
            kubeconfig, known["context"], known["namespaces"][0], "", {}, prefix=str(known["prefix"])
        )
        namespaces = [str(name) for name in known["namespaces"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        by_hand = f"delete the namespaces {folder.name} and {folder.name}-*, then this folder"
        raise RequirementError(
            f"{folder / SITE_FILE}: cannot be read ({type(error).__name__}: {error}): {by_hand}"
        ) from error
    asyncio.run(_purge(target, namespaces))


async def _purge(target: DeploymentTarget, namespaces: Sequence[str]) -> None:
    try:
        gate = Gate(target)
    except BadInputError as error:  # it could be used when the record was written
        raise RequirementError(f"{error}; mews down tries again") from error
    kube = gate.kube("purge")
    try:
        namespaces = [*namespaces, *await _sweep(kube, target, namespaces)]
        for name in namespaces:
            with contextlib.suppress(NotFoundError):
                await kube.delete(NAMESPACES, name)
        for kind, made in cluster_wide(component_names(), target.prefix):
            with contextlib.suppress(NotFoundError):
                await kube.delete(KINDS[kind], made)
        await _gone(kube, namespaces)
    except (ApiError, UnavailableError) as error:
        raise RequirementError(
            f"namespaces {', '.join(namespaces)} could not be removed: {error}; mews down tries again"
        ) from error
    finally:
        await gate.close()


async def _gone(kube: KubeApi, namespaces: Sequence[str]) -> None:
    """Wait until they are. Raises RequirementError saying what keeps one."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _GONE_S
    for name in namespaces:
        with contextlib.suppress(NotFoundError):
            while True:
                left = await kube.get(NAMESPACES, name)
                if loop.time() > deadline:
                    conditions = (left.get("status") or {}).get("conditions") or ()
                    messages = [each.get("message", "") for each in conditions if each["status"] == "True"]
                    why = "; ".join(messages) or "it does not say why"
                    raise RequirementError(
                        f"namespace {name} is not gone after {_GONE_S:g} s: {why}; mews down tries again"
                    )
                await rest(0.25)


async def _sweep(kube: KubeApi, target: DeploymentTarget, besides: Sequence[str]) -> list[str]:
    """Delete what scenarios created outside those namespaces; the namespaces among it are returned."""
    found = []
    for resource in await kube.discovery():
        try:
            marked = (await kube.list(resource, label_selector=f"{RUN}={target.namespace}")).items
        except ApiError:
            continue  # it has no list, or not for us
        for obj in marked:
            if resource == NAMESPACES:
                found.append(name_of(obj))
            elif namespace_of(obj) not in besides:
                with contextlib.suppress(NotFoundError):
                    await kube.delete(resource, name_of(obj), namespace=namespace_of(obj) or None)
    return found
