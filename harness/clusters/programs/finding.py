"""The programs of Kubernetes on this machine, found as envtest finds them."""

from __future__ import annotations

import os
import shutil

from mews.harness.errors import Lacks

NEEDED = ("etcd", "kube-apiserver", "openssl")
SCHEDULER, CONTROLLERS = "kube-scheduler", "kube-controller-manager"

HOW = "get them with `setup-envtest use 1.34.x` and set KUBEBUILDER_ASSETS to the folder it prints, or put them on PATH"

HOW_PROGRAMS = (
    "get it with `curl -LO https://dl.k8s.io/v1.34.2/bin/linux/amd64/{0}`, make it executable and put it on PATH"
)
"""How to get a program that envtest's archives do not have."""


def how_to_get(program: str) -> str:
    """The line for a program that is not found."""
    if program == "openssl":
        return "install openssl and put it on PATH"
    return HOW_PROGRAMS.format(program) if program in (SCHEDULER, CONTROLLERS) else HOW


def find(program: str) -> str | None:
    """Where a program is: in the folder that KUBEBUILDER_ASSETS names, else on PATH; None when it is nowhere."""
    folder = os.environ.get("KUBEBUILDER_ASSETS", "")
    return (shutil.which(program, path=folder) if folder else None) or shutil.which(program)


def needed() -> dict[str, str]:
    """Each program that a control plane cannot do without, and where it is.

    Raises Lacks naming those that are missing, and how to get them.
    """
    found = {program: find(program) for program in NEEDED}
    missing = [program for program, path in found.items() if path is None]
    if missing:
        where = "neither in KUBEBUILDER_ASSETS nor on PATH"
        raise Lacks(f"--cluster control-plane: {', '.join(missing)} {where}; {HOW}")
    return {program: path for program, path in found.items() if path is not None}
