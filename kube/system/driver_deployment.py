"""How a pod runs a DRA driver of GPUs on its node."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.system.deployment import CONFIG, ON_NODE, RECORDS, ComponentDeployment, rule


def driver_deployment(module: str, folders: Sequence[str]) -> ComponentDeployment:
    """Return that of ``python -m MODULE``, which serves, registers and writes CDI files in these folders of its
    node."""
    return ComponentDeployment(
        ("-m", module, "--config", CONFIG, "--records", RECORDS),
        everywhere=(
            rule("resource.k8s.io", ["resourceslices"], ["list", "watch", "create", "update", "delete"]),
            rule("resource.k8s.io", ["resourceclaims"], ["get"]),
            rule("", ["nodes"], ["get"]),  # which owns its slice
        ),
        security=ON_NODE,
        kubelet_folders=True,
        host_files=True,
        node_folders=folders,
        registers=False,
    )
