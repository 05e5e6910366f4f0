"""Makes the folder of a release of Kubernetes, ``kube/releases/MINOR``, from the Go modules that upstream publishes.

    python ci/release_data.py v1.36.3

reads k8s.io/kubernetes and its staging modules of that version in the module cache (``go mod download
k8s.io/kubernetes@v1.36.3 k8s.io/api@v0.36.3 …`` puts them there). Nothing is built, no server runs.
"""

# A tool for developers: it prints what it wrote.
# ruff: noqa: T201

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent.parent / "kube" / "releases"
_GATE_FILES = (
    ("kubernetes", "pkg/features/kube_features.go"),
    ("apiserver", "pkg/features/kube_features.go"),
    ("apiextensions-apiserver", "pkg/features/kube_features.go"),
    ("client-go", "features/known_features.go"),
    ("component-base", "logs/api/v1/kube_features.go"),
    ("component-base", "metrics/features/kube_features.go"),
    ("component-base", "zpages/features/kube_features.go"),
    ("controller-manager", "pkg/features/kube_features.go"),
)
_CONSTANT = re.compile(r'^\t(\w+)\s+(?:featuregate\.)?Feature\s*=\s*"(\w+)"', re.MULTILINE)
_GATE = re.compile(r"^\t+(?:\w+\.)?(\w+): \{\n((?:\t+(?:\{Version.*|//.*)?\n)+)", re.MULTILINE)
_UNVERSIONED = re.compile(r"^\t(\w+): +\{Default: (\w+), PreRelease: (\w+)(?:, LockToDefault: (\w+))?\}", re.MULTILINE)
"""As client-go wrote its gates up to 1.34: as of that release."""
_SPEC = re.compile(
    r'\{Version: version\.MustParse\("1\.(\d+)"\), Default: (\w+), PreRelease: (?:featuregate\.)?(\w*)'
    r"(?:, LockToDefault: (\w+))?"
)


class Sources:
    """The modules of one version in Go's module cache."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.minor = int(version.split(".")[1])
        cache = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout.strip()
        self._folder = Path(cache, "k8s.io")

    def module(self, name: str) -> Path:
        """The folder of a module; those beside k8s.io/kubernetes are v0.MINOR.PATCH."""
        version = self.version if name == "kubernetes" else self.version.replace("v1.", "v0.")
        folder = self._folder / f"{name}@{version}"
        if not folder.is_dir():
            sys.exit(f"{folder}: not there: go mod download k8s.io/{name}@{version}")
        return folder

    def text(self, module: str, path: str) -> str:
        """A file of a module, "" where that version has none."""
        file = self.module(module) / path
        return file.read_text(encoding="utf-8") if file.is_file() else ""


def gates(sources: Sources) -> dict[str, str]:
    """``STAGE STATE [locked]`` -> names of the gates, of the last spec that is not above the release."""
    found = defaultdict(list)
    for name, words in sorted(set(_gates(sources))):
        found[words].append(name)
    return {words: " ".join(members) for words, members in sorted(found.items())}


def _gates(sources: Sources) -> Iterator[tuple[str, str]]:
    for module, path in _GATE_FILES:
        text = sources.text(module, path)
        names = dict(_CONSTANT.findall(text))
        for constant, body in _GATE.findall(text):
            specs = [spec for spec in _SPEC.findall(body) if int(spec[0]) <= sources.minor]
            if specs and constant in names:
                yield names[constant], _words(*specs[-1][1:])
        for constant, *spec in _UNVERSIONED.findall(text):
            yield names[constant], _words(*spec)


def _words(default: str, stage: str, locked: str) -> str:
    words = [stage.lower() or "ga", "on" if default == "true" else "off"]
    return " ".join(words + ["locked"] * (locked == "true"))


def write(folder: Path, name: str, value: Any) -> None:
    """A file of the folder, a fact a line."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    (folder / name).write_text(text, encoding="utf-8")
    print(f"{folder.name}/{name}: {len(text)} bytes")


def main(version: str) -> None:
    """Write the folder."""
    sources = Sources(version)
    folder = OUT / f"1.{sources.minor}"
    folder.mkdir(exist_ok=True)
    write(folder, "release.json", {"version": version})
    write(folder, "gates.json", gates(sources))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not re.fullmatch(r"v1\.\d+\.\d+", sys.argv[1]):
        sys.exit("usage: python ci/release_data.py v1.MINOR.PATCH")
    main(sys.argv[1])
