"""Whether the container runtimes of nodes can give containers the devices of resource claims.

They do so by the Container Device Interface. Source: containerd's docs/cri/config.md: since 1.7, off by default; on by
default since 2.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mews.harness.errors import RequirementError
from mews.kube.api.objects import Object, name_of

_CONTAINERD = re.compile(r"containerd://(\d+)\.(\d+)")
_FIRST = (1, 7)


def check_device_injection(nodes: Iterable[Object]) -> None:
    """Raise RequirementError for a node with a containerd that knows nothing of it. What other runtimes can do, nobody
    says."""
    for node in nodes:
        runtime = str(((node.get("status") or {}).get("nodeInfo") or {}).get("containerRuntimeVersion", ""))
        version = _CONTAINERD.match(runtime)
        if version is not None and (int(version[1]), int(version[2])) < _FIRST:
            raise RequirementError(
                f"node {name_of(node)}: {runtime} gives no container the devices of a resource claim: "
                "needs containerd 2.0, or 1.7 with enable_cdi"
            )
