"""Builds the judges from their Go modules, once, into a cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
KUBERNETES = "v1.34.2"
CONTROLLER_RUNTIME = "v0.22.4"
HELM = "v3.19.2"
_BUILD_S = 3600


class NotBuilt(Exception):
    """Why a judge cannot be had here."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A program: its module's folder here (``go.mod`` and ``go.sum`` with what it is made of), and how it is built
    there; ``{out}`` is the file."""

    name: str
    folder: Path
    command: Sequence[str]

    def built(self) -> Path:
        """The program, built where it is not there yet.

        Raises NotBuilt with the reason.
        """
        go = shutil.which("go")
        if go is None:
            raise NotBuilt("go is not on PATH")
        out = _cache() / f"{self.name}-{self._key()}"
        if out.is_file():
            return out
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="mews-judge-") as folder:
            copied = Path(shutil.copytree(self.folder, Path(folder) / "module"))
            part = Path(folder) / "program"
            command = [go, *(word.replace("{out}", str(part)) for word in self.command)]
            env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
            done = subprocess.run(command, cwd=copied, env=env, capture_output=True, text=True, timeout=_BUILD_S)
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
                raise NotBuilt(f"{self.name} cannot be built: {last}")
            shutil.move(part, out.with_suffix(".part"))
        out.with_suffix(".part").replace(out)
        return out

    def _key(self) -> str:
        told = hashlib.sha256(repr(tuple(self.command)).encode())
        for file in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            told.update(file.read_bytes())
        return told.hexdigest()[:12]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mews" / "judges"


def _test_binary(package: str, *flags: str) -> tuple[str, ...]:
    return ("test", "-c", "-vet=off", *flags, "-o", "{out}", package)


_VERSION = f"-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES}"
E2E = Judge("e2e.test", HERE / "module", _test_binary("k8s.io/kubernetes/test/e2e", "-ldflags", _VERSION))
