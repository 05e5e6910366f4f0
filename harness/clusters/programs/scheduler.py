"""The real kube-scheduler as a component of a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mews.harness.clusters.process import ProcessComponent
from mews.harness.clusters.programs.control_plane import Program
from mews.harness.clusters.programs.finding import SCHEDULER, feature_switch, of_release
from mews.harness.manifests.kube_scheduler import configuration
from mews.harness.ports.fence import Fence
from mews.kube.component import Runnable
from mews.kube.emulated.kubelet.podnet.callers import Callers
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease
from mews.own_files import write_own

_QPS, _BURST = 1000, 2000
"""Its own defaults would cap binding at about 52 pods/s (contract apiserver.md section 8)."""


def kube_scheduler(
    folder: Path,
    kubeconfig: Path,
    *,
    extenders: Sequence[Mapping[str, Any]] = (),
    content_type: str | None = None,
    release: ClusterRelease = STANDARD,
    options: Mapping[str, Any] = MappingProxyType({}),
    callers: Callers | None = None,
) -> Program | None:
    """Return the program, with its configuration in a folder, or None where it is not found.

    ``content_type``: of a server that does not take protobuf; ``release``: of that release, with its features;
    ``options``: of the stack's default scheduler, of which those that this program has are taken; ``callers``: by
    which it finds extenders that are pods.
    """
    path = of_release(SCHEDULER, release.name)
    if path is None:
        return None
    forms = {} if content_type is None else {"contentType": content_type, "acceptContentTypes": content_type}
    timeout_s = options.get("device_binding_timeout_s")
    plugin_args = {} if timeout_s is None else {"DynamicResources": {"bindingTimeout": f"{timeout_s:g}s"}}
    content = configuration(str(kubeconfig), extenders, {"qps": _QPS, "burst": _BURST, **forms}, plugin_args)
    config = folder / "kube-scheduler.json"
    write_own(config, json.dumps(content))
    argv = [path, f"--config={config}", *feature_switch(release), *no_server(kubeconfig)]
    return program(argv, folder / "default-scheduler.log", callers)


def program(argv: Sequence[str], log: Path, callers: Callers | None = None) -> Program:
    """Return a program of Kubernetes as a component."""

    def make(fence: Fence) -> Runnable:
        return ProcessComponent(argv, fence=fence, log=log, callers=callers)

    return make


def no_server(kubeconfig: Path) -> tuple[str, ...]:
    """Flags of a program that need not be asked anything."""
    return (
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--secure-port=0",
    )
