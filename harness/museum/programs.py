"""Programs of others at the version that has a bug and at the one that has not: where they are, and how to get them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

PROGRAM = "MEWS_PROGRAM"
"""In the environment of a run: the path of the program, for the world's scripts and processes."""


class ProgramSide(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the two versions, such as ``v1.34.2``, and the values of the scenario that go with it (dotted path ->
    value)."""

    version: str
    set: Mapping[str, Any] = field(default_factory=dict)


class BugProgram(Struct, frozen=True, forbid_unknown_fields=True):
    """An unmodified program. ``name``: that of its file; ``module``: the Go module that has it in ``cmd/NAME``, "" for
    a program of a Kubernetes release."""

    name: str
    bad: ProgramSide
    good: ProgramSide
    module: str = ""

    def side(self, *, has_bug: bool) -> ProgramSide:
        """Return the version with the bug, or the one without."""
        return self.bad if has_bug else self.good

    def path(self, *, has_bug: bool) -> Path:
        """Return where the program must be."""
        version = self.side(has_bug=has_bug).version
        if self.module:
            return _built() / f"{self.name}-{version}"
        return _releases() / version / self.name

    def lacking(self) -> str:
        """Return what is missing, and the line that gets it; "" where both versions are there."""
        for has_bug in (True, False):
            path = self.path(has_bug=has_bug)
            if not (path.is_file() and os.access(path, os.X_OK)):
                return f"{path} is missing; get it with: {self.build(has_bug=has_bug)}"
        return ""

    def build(self, *, has_bug: bool) -> str:
        """Return the command line that gets one of them."""
        path, version = self.path(has_bug=has_bug), self.side(has_bug=has_bug).version
        if self.module:
            got = f"GOBIN={path.parent} go install {self.module}/cmd/{self.name}@{version}"
            return f"{got} && mv {path.parent / self.name} {path}"
        url = f"https://dl.k8s.io/{version}/bin/linux/amd64/{self.name}"
        return f"curl -L --create-dirs -o {path} {url} && chmod +x {path}"


def _built() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mews" / "programs"


def _releases() -> Path:
    """Return the folder in which the releases lie beside each other, each in a folder of its version."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    return Path(assets).parent if assets else _built() / "kubernetes"
