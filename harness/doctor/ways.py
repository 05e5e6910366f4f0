"""Which ways to run this machine offers: every check is the one that the run itself makes."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from importlib import metadata
from types import MappingProxyType

from mews.harness.backends import backend_of
from mews.harness.doctor.finding import WayFinding
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.extras import check_installed
from mews.project import DISTRIBUTION

Check = Callable[[], object]
"""Raises RequirementError for what is missing, BadInputError for a file that cannot be used."""

_VIRTUAL = "mews.harness.clusters.embedded.in_process"


def _check_virtual() -> None:
    """Look for the distribution's own requirements, and import what a run in virtual time imports.

    Raises RequirementError.
    """
    for name in _own_requirements():
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError as error:
            raise RequirementError(f"{name} is not installed; run pip install '{DISTRIBUTION}'") from error
    try:
        importlib.import_module(_VIRTUAL)
    except ModuleNotFoundError as error:
        raise RequirementError(f"{error.name} is not installed; run pip install '{DISTRIBUTION}'") from error


def _own_requirements() -> list[str]:
    """Return the names that are required without any extra; none where the package runs without being installed."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    return [found[0] for line in lines if "extra ==" not in line and (found := re.match(r"[\w.-]+", line))]


def _check_cluster_extra() -> None:
    check_installed("cluster")


def _check_kubeconfig() -> None:
    """Raises RequirementError for a kubeconfig without a context, BadInputError for one that cannot be read."""
    check_installed("cluster")
    from mews.harness.clusters.real.access import known_contexts

    if not known_contexts(None):
        raise RequirementError("the default kubeconfig has no context; set KUBECONFIG, or give --kubeconfig FILE")


def _check_image() -> None:
    check_installed("cluster")  # what names the image is imported with the clients
    from mews.harness.clusters.kubeconfig.target import named_image

    named_image()


WAYS: Mapping[str, tuple[str, tuple[Check, ...]]] = MappingProxyType(
    {
        "virtual": ("mews run demo", (_check_virtual,)),
        "embedded": ("mews run demo --time wall", (_check_cluster_extra,)),
        "control-plane": (
            "mews run demo --cluster control-plane",
            (_check_cluster_extra, lambda: backend_of("control-plane").check_available()),
        ),
        "kind": (
            "mews run demo --cluster kind",
            (_check_cluster_extra, lambda: backend_of("kind").check_available()),
        ),
        "kubeconfig": ("mews run demo --cluster kubeconfig", (_check_kubeconfig, _check_image)),
    }
)
"""Name (as ``--for`` takes it) -> the command that uses it, and what must hold."""


def find_way(name: str) -> WayFinding:
    """Check one way to run.

    Raises KeyError for an unknown name.
    """
    use, checks = WAYS[name]
    lines = (_lack(name, check) for check in checks)
    return WayFinding(name, use, tuple(dict.fromkeys(line for line in lines if line)))


def _lack(name: str, check: Check) -> str:
    """Return what the check reports as missing, "" for nothing."""
    try:
        check()
    except (
        RequirementError,
        BadInputError,
    ) as error:  # a kubeconfig that cannot be used is the user's input, not the machine's
        return str(error).removeprefix(f"--cluster {name}: ")
    return ""
