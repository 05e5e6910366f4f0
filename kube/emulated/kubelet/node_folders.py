"""Paths of a node that lie in its own folder on this machine: the kubelet's root, and where CDI files belong."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

ROOT = "/var/lib/kubelet"
"""The kubelet's root, as drivers and their manifests know it (cmd/kubelet/app/options: --root-dir)."""
CDI = {"/etc/cdi": "etc-cdi", "/var/run/cdi": "run-cdi", "/run/cdi": "run-cdi"}
"""Where CDI files are looked for (CDI's ``DefaultSpecDirs``; /var/run is /run), in folders of these names."""


def placed(folder: Path, path: str) -> Path | None:
    """Where a path of the node is on this machine, ``folder`` being the node's; None for what is not the kubelet's.
    No path leads out of the folder."""
    wanted = PurePosixPath(path)
    if ".." in wanted.parts:
        return None
    for prefix, name in {ROOT: "", **CDI}.items():
        if wanted.is_relative_to(prefix):
            return folder / name / wanted.relative_to(prefix)
    return None


def is_placed(path: str) -> bool:
    """Whether it is one of those."""
    return placed(Path(), path) is not None
