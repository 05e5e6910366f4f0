"""Somebody's cluster: which of its nodes we were told to use, and nothing below its API."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mews.harness.clusters.kind.image.build import IMAGE
from mews.harness.clusters.real.access import Gate
from mews.harness.clusters.real.ground import Place
from mews.harness.errors import Lacks
from mews.harness.scenario.errors import Lacking
from mews.kube.api.errors import ApiError, Unavailable
from mews.kube.api.objects import Object, name_of
from mews.kube.api.resources import NODES

HOST_LABEL = "mews.dev/host"
"""On a node: the host of the hardware that it is; ``any`` for whichever host is left."""


class SomeonesGround:
    """Ground of ``--cluster kubeconfig``."""

    name = "kubeconfig"

    def __init__(self, place: Place) -> None:
        self.place = place

    async def kill(self, component: str) -> None:
        """Raises Lacking: what is not ours is not killed."""
        raise Lacking(f"needs to kill {component}: it belongs to the cluster")

    async def start(self, component: str) -> None:
        """Raises Lacking."""
        raise Lacking(f"needs to start {component}: it belongs to the cluster")

    async def logs(self) -> Mapping[str, str]:
        """None: the nodes are not ours to look into."""
        return {}


async def find_place(kubeconfig: Path | None, context: str | None, hosts: Sequence[str]) -> Place:
    """Where the stack goes: namespaces of this process' own, on the nodes that bear our label.

    Raises Lacks for a cluster that cannot be reached, an image that is not named, and nodes that are not labelled.
    """
    number = os.getpid()
    unnamed = Place(kubeconfig, context, f"mews-{number}", _image(), {}, prefix=f"mews-{number}-")
    gate = Gate(unnamed)
    try:
        nodes = (await asyncio.wait_for(gate.kube("place").list(NODES), 30.0)).items
    except (ApiError, Unavailable, TimeoutError) as error:
        raise Lacks(f"--cluster kubeconfig: the cluster cannot be asked for its nodes: {error}") from error
    finally:
        await gate.close()
    return Place(
        kubeconfig,
        context,
        unnamed.namespace,
        unnamed.image,
        assigned(nodes, hosts),
        prefix=unnamed.prefix,
        namespaces={"default": f"mews-{number}-scenario"},
        mark=unnamed.namespace,
        tidy=True,
    )


def assigned(nodes: Sequence[Object], hosts: Sequence[str]) -> dict[str, str]:
    """Host -> node: first those that a label names, then the nodes for any host in the order of their names.

    Raises Lacks saying which label is missing.
    """
    labelled = {name_of(node): (node["metadata"].get("labels") or {}).get(HOST_LABEL) for node in nodes}
    found = {host: node for node, host in sorted(labelled.items()) if host in hosts}
    spare = [node for node, host in sorted(labelled.items()) if host == "any"]
    for host in hosts:
        if host not in found and spare:
            found[host] = spare.pop(0)
    missing = [host for host in hosts if host not in found]
    if missing:
        raise Lacks(
            f"--cluster kubeconfig: no node may be used as {', '.join(missing)}: "
            f"kubectl label node NODE {HOST_LABEL}={missing[0]} (or {HOST_LABEL}=any)"
        )
    return {host: found[host] for host in hosts}


def _image() -> str:
    image = os.environ.get(IMAGE)
    if not image:
        raise Lacks(
            f"--cluster kubeconfig: {IMAGE} must name the component image where the nodes can pull it; "
            "`python -m mews.harness.clusters.kind.image.build` makes it"
        )
    return image
