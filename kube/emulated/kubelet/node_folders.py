"""Paths of a node that lie in its own folder on this machine: the kubelet's root, where CDI files belong, and the root
of NVIDIA's driver."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

ROOT = "/var/lib/kubelet"
"""The kubelet's root, as drivers and their manifests know it (cmd/kubelet/app/options: --root-dir)."""
CDI = {"/etc/cdi": "etc-cdi", "/var/run/cdi": "run-cdi", "/run/cdi": "run-cdi"}
"""Where CDI files are looked for (CDI's ``DefaultSpecDirs``; /var/run is /run), in folders of these names."""

DRIVER = {"/run/nvidia/driver": "nvidia-driver", "/var/run/nvidia/driver": "nvidia-driver"}
"""Where a GPU operator has the root of the driver that runs in a container (gpu-operator, ``driver`` state)."""


def placed(folder: Path, path: str) -> Path | None:
    """Return where a path of the node is on this machine, ``folder`` being the node's; None for what is not the
    kubelet's. No path leads out of the folder."""
    wanted = PurePosixPath(path)
    if ".." in wanted.parts:
        return None
    for prefix, name in {ROOT: "", **CDI, **DRIVER}.items():
        if wanted.is_relative_to(prefix):
            return folder / name / wanted.relative_to(prefix)
    return None


def is_placed(path: str) -> bool:
    """Return whether it is one of those."""
    return placed(Path(), path) is not None
