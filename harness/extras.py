"""What the distribution brings only when it is asked for, and the line that says how to ask.

The distribution's own dependencies are those of the chassis and of virtual time; an extra brings what the rest needs.
Nobody looks beforehand, except where processes are started before what is wanted of them is imported: what is not
installed is found out by importing it, and the outermost loops (the command line, an engine's run) make the line of it
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType

from mews.harness.errors import RequirementError
from mews.project import DISTRIBUTION

EXTRA_OF: Mapping[str, str] = MappingProxyType(
    {
        "aiohttp": "cluster",
        "google": "cluster",
        "grpc": "cluster",
        "docker": "containers",
        "faker": "fixtures",
        "kubernetes": "kubeconfig",
        "multidict": "cluster",
        "orjson": "cluster",
        "prometheus_client": "cluster",
        "requests": "containers",
        "matplotlib": "plots",
        "mfusepy": "fuse",
        "numpy": "train",
    }
)
"""Module -> the extra of pyproject.toml that brings it."""


def lacking(error: ModuleNotFoundError) -> RequirementError | None:
    """Return the one line for a module that an extra brings; None for any other, whose absence is a mistake of ours."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(module)
    if extra is None:
        return None
    return RequirementError(f"{module} is not installed; {install(extra)} provides it")


def check_installed(extra: str) -> None:
    """Raise RequirementError unless all modules of an extra can be imported."""
    for module in missing_of(extra):
        raise RequirementError(f"{module} is not installed; {install(extra)} provides it")


def missing_of(extra: str) -> list[str]:
    """Return the modules of an extra that cannot be imported."""
    return [module for module, brought_by in EXTRA_OF.items() if brought_by == extra and find_spec(module) is None]


def install(extra: str) -> str:
    """Return what to type."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
