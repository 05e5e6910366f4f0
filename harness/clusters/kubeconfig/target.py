"""Where a stack goes in somebody's cluster: the nodes we were told to use, and namespaces of this run's own."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from mews.harness.clusters.kind.image.build import IMAGE
from mews.harness.clusters.kubeconfig.rights import missing_rights
from mews.harness.clusters.real.access import Gate, known_contexts
from mews.harness.clusters.real.systems import default_namespaces
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.errors import BadInputError, RequirementError
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, name_of
from mews.kube.api.resources import NODES
from mews.names import must_be

HOST_LABEL = "mews.dev/host"
"""On a node: the host of the hardware that it is; ``any`` for whichever host is left."""

_ANSWER_S = 30.0
_NAMED = 5
"""Missing rights that are named one by one."""


async def find_target(kubeconfig: Path | None, context: str | None, hosts: Sequence[str]) -> DeploymentTarget:
    """Return where the stack goes: namespaces of this run's own, on the nodes that bear our label.

    Raises BadInputError for a context that the kubeconfig does not have, RequirementError for a cluster that cannot be
    reached, rights that are missing, an image that is not named, and nodes that are not labelled.
    """
    # Processes of several machines or containers may bear the same number.
    name = f"mews-{os.getpid()}-{secrets.token_hex(3)}"
    unnamed = DeploymentTarget(kubeconfig, context, name, named_image(), {}, prefix=f"{name}-")
    check_context(kubeconfig, context)
    gate = Gate(unnamed)
    try:
        async with asyncio.timeout(_ANSWER_S):
            kube = gate.kube("place")
            nodes = (await kube.list(NODES)).items
            missing = await missing_rights(kube)
    except TimeoutError as error:
        raise RequirementError(f"--cluster kubeconfig: {gate.url} did not answer within {_ANSWER_S:g} s") from error
    except (ApiError, UnavailableError) as error:
        raise RequirementError(f"--cluster kubeconfig: the cluster cannot be asked for its nodes: {error}") from error
    finally:
        await gate.close()
    found = assigned(nodes, hosts)
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise RequirementError(
            f"--cluster kubeconfig: this user may not {', '.join(missing[:_NAMED])}{more}: "
            "a run creates namespaces, roles and workloads; use an administrator's context"
        )
    return DeploymentTarget(
        kubeconfig,
        context,
        name,
        unnamed.image,
        found,
        prefix=unnamed.prefix,
        namespaces={"default": f"{name}-scenario", **dict.fromkeys(default_namespaces(), name)},
        mark=name,
        tidy=True,
    )


def check_context(kubeconfig: Path | None, context: str | None) -> None:
    """Raise BadInputError for a context that is not in the kubeconfig, or a kubeconfig that cannot be read."""
    if context is None:
        return
    known = known_contexts(kubeconfig)
    if context not in known:
        raise BadInputError(f"--context {context}: {must_be(context, known)}")


def assigned(nodes: Sequence[Object], hosts: Sequence[str]) -> dict[str, str]:
    """Host -> node: first those that a label names, then the nodes for any host in the order of their names.

    Raises RequirementError saying which label is missing.
    """
    labelled = {name_of(node): (node["metadata"].get("labels") or {}).get(HOST_LABEL) for node in nodes}
    found = {host: node for node, host in sorted(labelled.items()) if host in hosts}
    spare = [node for node, host in sorted(labelled.items()) if host == "any"]
    for host in hosts:
        if host not in found and spare:
            found[host] = spare.pop(0)
    missing = [host for host in hosts if host not in found]
    if missing:
        raise RequirementError(
            f"--cluster kubeconfig: no node may be used as {', '.join(missing)}: "
            f"kubectl label node NODE {HOST_LABEL}={missing[0]} (or {HOST_LABEL}=any)"
        )
    return {host: found[host] for host in hosts}


def named_image() -> str:
    """Return the component image that the user names for nodes of somebody's cluster.

    Raises RequirementError.
    """
    image = os.environ.get(IMAGE)
    if not image:
        raise RequirementError(
            f"--cluster kubeconfig: {IMAGE} must name the component image where the nodes can pull it; "
            "`python -m mews.harness.clusters.kind.image.build` makes it"
        )
    return image
