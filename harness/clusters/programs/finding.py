"""The programs of Kubernetes on this machine, found as envtest finds them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from mews.harness.errors import RequirementError
from mews.kube.releases.cluster_release import ClusterRelease
from mews.kube.releases.release_data import DEFAULT

NEEDED = ("etcd", "kube-apiserver", "openssl")
SCHEDULER, CONTROLLERS = "kube-scheduler", "kube-controller-manager"
_VERSION_S = 30.0

HOW = "get them with `setup-envtest use 1.34.x` and set KUBEBUILDER_ASSETS to the folder it prints, or put them on PATH"
_HOW_OF = (
    "get them with `setup-envtest use {0}.x` and set KUBEBUILDER_ASSETS to the folder it prints, or to one beside it"
)

HOW_PROGRAMS = (
    "get it with `curl -LO https://dl.k8s.io/v1.34.2/bin/linux/amd64/{0}`, make it executable and put it on PATH"
)
"""How to get a program that envtest's archives do not have."""


def how_to_get(program: str) -> str:
    """Return the line for a program that is not found."""
    if program == "openssl":
        return "install openssl and put it on PATH"
    return HOW_PROGRAMS.format(program) if program in (SCHEDULER, CONTROLLERS) else HOW


def find(program: str) -> str | None:
    """Return where a program is: in the folder that KUBEBUILDER_ASSETS names, else on PATH; None when it is nowhere."""
    folder = os.environ.get("KUBEBUILDER_ASSETS", "")
    return (shutil.which(program, path=folder) if folder else None) or shutil.which(program)


def needed(release: str = DEFAULT) -> dict[str, str]:
    """Return each program that a control plane cannot do without, and where it is; of the default release those that
    are found, of another those of its version.

    Raises RequirementError naming those that are missing, and how to get them.
    """
    found = {program: find(program) for program in NEEDED}
    if release != DEFAULT:
        found |= dict.fromkeys(("etcd", "kube-apiserver")) | _of_release(release)
    missing = [program for program, path in found.items() if path is None]
    if missing and release != DEFAULT:
        raise RequirementError(
            f"--cluster control-plane: {', '.join(missing)} of Kubernetes {release}; {_HOW_OF.format(release)}"
        )
    if missing:
        where = "neither in KUBEBUILDER_ASSETS nor on PATH"
        raise RequirementError(f"--cluster control-plane: {', '.join(missing)} {where}; {HOW}")
    return {program: path for program, path in found.items() if path is not None}


def of_release(program: str, release: str) -> str | None:
    """Return where a program of that release is, None when it is nowhere; of the default release the one that is
    found."""
    if release == DEFAULT:
        return find(program)
    folder = _folder_of(release)
    return None if folder is None else shutil.which(program, path=folder)


def feature_switch(release: ClusterRelease) -> list[str]:
    """Return the option that switches a release's features, where any is said."""
    given = release.gates.settings
    return [f"--feature-gates={switched(given)}"] if given else []


def switched(given: Mapping[str, bool]) -> str:
    """``NAME=true,…``, as options of Kubernetes' programs take it."""
    return ",".join(f"{name}={str(value).lower()}" for name, value in given.items())


def _of_release(release: str) -> dict[str, str | None]:
    folder = _folder_of(release)
    return {name: shutil.which(name, path=folder) for name in ("etcd", "kube-apiserver")} if folder else {}


def _folder_of(release: str) -> str | None:
    """Return the folder whose kube-apiserver is of that release: KUBEBUILDER_ASSETS, one beside it, or that on PATH."""
    assets, on_path = os.environ.get("KUBEBUILDER_ASSETS", ""), shutil.which("kube-apiserver")
    beside = sorted(Path(assets).parent.iterdir()) if assets and Path(assets).parent.is_dir() else []
    named = [str(folder) for folder in beside if re.match(rf"v?{re.escape(release)}\b", folder.name)]
    places = [assets, *named, *([os.path.dirname(on_path)] if on_path else [])]
    return next((place for place in places if place and _version_in(place) == release), None)


def _version_in(folder: str) -> str:
    """``1.36``, of the kube-apiserver in a folder; "" where there is none that runs."""
    program = shutil.which("kube-apiserver", path=folder)
    if program is None:
        return ""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_VERSION_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(r"v(\d+\.\d+)\.", done.stdout)
    return found[1] if found else ""
