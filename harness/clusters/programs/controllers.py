"""The real kube-controller-manager as a component of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mews.harness.clusters.programs.control_plane import Program
from mews.harness.clusters.programs.finding import CONTROLLERS, feature_switch, of_release
from mews.harness.clusters.programs.scheduler import no_server, program
from mews.kube.emulated.kubelet.podnet.callers import Callers
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease

_MONITOR_PERIOD_S, _MONITOR_GRACE_S = 5.0, 50.0
"""Its defaults (contract kubelet.md section 11); heartbeats run at the same pace."""


def kube_controller_manager(
    folder: Path,
    kubeconfig: Path,
    *,
    run: Sequence[str],
    speed: float = 1.0,
    flags: Sequence[str] = (),
    release: ClusterRelease = STANDARD,
    callers: Callers | None = None,
) -> Program | None:
    """Return the program of that release, or None where it is not found. ``run``: which of its controllers, as its
    ``--controllers``; ``callers``: by which it finds pods and Services."""
    path = of_release(CONTROLLERS, release.name)
    if path is None:
        return None
    monitor = {"period": _MONITOR_PERIOD_S, "grace-period": _MONITOR_GRACE_S}
    argv = [
        *(path, *no_server(kubeconfig), f"--kubeconfig={kubeconfig}"),
        *("--leader-elect=false", "--use-service-account-credentials=false"),
        *("--kube-api-qps=500", "--kube-api-burst=1000", f"--controllers={','.join(run)}"),
        *(f"--node-monitor-{name}={int(1000 * span_s / speed)}ms" for name, span_s in monitor.items()),
        *feature_switch(release),
        *flags,
    ]
    return program(argv, folder / "controller-manager.log", callers)
