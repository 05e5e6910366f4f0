"""The published sources of a release of Kubernetes, in Go's module cache."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


class Sources:
    """The modules of one version in Go's module cache."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.minor = int(version.split(".")[1])
        cache = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout.strip()
        self._folder = Path(cache, "k8s.io")

    def module(self, name: str) -> Path:
        """Return the folder of a module; those beside k8s.io/kubernetes are v0.MINOR.PATCH."""
        version = self.version if name == "kubernetes" else self.version.replace("v1.", "v0.")
        folder = self._folder / f"{name}@{version}"
        if not folder.is_dir():
            sys.exit(f"{folder}: not there: go mod download k8s.io/{name}@{version}")
        return folder

    def text(self, module: str, path: str) -> str:
        """Return a file of a module, "" where that version has none."""
        file = self.module(module) / path
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def protobuf(self) -> list[Path]:
        """Return the folders that hold the published generated.proto files."""
        return [
            self.module("api"),
            *(self.module(name) / "pkg" for name in ("apimachinery", "apiextensions-apiserver", "kube-aggregator")),
        ]
