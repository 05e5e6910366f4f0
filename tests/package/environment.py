"""Virtual environments outside the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment, and the folder that its commands run in."""

    root: Path
    folder: Path

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return self.root / "bin"

    @property
    def variables(self) -> dict[str, str]:
        """Those of this machine without any that leads to the repository, the tests' own environment or a cluster."""
        kept = (
            "LANG",
            "TERM",
            "HOME",
            "TMPDIR",
            "XDG_CACHE_HOME",
            "XDG_RUNTIME_DIR",
            "PIP_INDEX_URL",
            "PIP_CONFIG_FILE",
        )
        known = {name: os.environ[name] for name in kept if name in os.environ}
        path = f"{self.bin}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
        return {**known, "PATH": path, "XDG_STATE_HOME": str(self.root / "state"), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *command: str, timeout_s: float = 120.0, **more: str) -> subprocess.CompletedProcess[str]:
        """What a command of it gives."""
        environment = {**self.variables, **more}
        return subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder, env=environment, timeout=timeout_s
        )

    def check(self, *command: str, timeout_s: float = 120.0, **more: str) -> str:
        """The standard output of a command that must succeed."""
        done = self.run(*command, timeout_s=timeout_s, **more)
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout


def made(python: str, root: Path) -> Environment:
    """A fresh one with nothing but pip."""
    subprocess.run([python, "-m", "venv", str(root / "venv")], check=True, capture_output=True)
    folder = root / "elsewhere"
    folder.mkdir()
    return Environment(root / "venv", folder)


def lend(environment: Environment, wheel: Path, extras: Sequence[str]) -> None:
    """Let it see what the tests' environment has of the wheel's requirements, and nothing else of that: no download.

    Distributions are linked one by one, so neither the editable install nor what other extras bring is visible.
    """
    lent = environment.root / "lent"
    lent.mkdir()
    for found in needed_by(wheel, extras):
        for name in {Path(str(file)).parts[0] for file in found.files or () if ".." not in Path(str(file)).parts}:
            source, link = Path(str(found.locate_file(name))), lent / name
            if source.exists() and not link.exists() and name != "__pycache__":
                _bring(source, link)
    [site] = environment.root.glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(f"{lent}\n")


def _bring(source: Path, link: Path) -> None:
    """A link; of a clone below /tmp the files themselves, since a process pod sees nothing there that nobody names."""
    if Path("/tmp") not in source.parents:
        link.symlink_to(source)
    elif source.is_dir():
        shutil.copytree(source, link, copy_function=os.link)
    else:
        os.link(source, link)


def needed_by(wheel: Path, extras: Sequence[str]) -> list[Distribution]:
    """The installed distributions that a wheel leads to with these extras. Raises PackageNotFoundError."""
    [itself] = distributions(path=[str(wheel)])
    found: dict[str, Distribution] = {}
    asked = _wanted(itself, {"", *extras})
    seen: set[str] = set()
    while asked:
        one = asked.pop()
        if str(one) not in seen:
            seen.add(str(one))
            found[one.name] = distribution(one.name)
            asked += _wanted(found[one.name], {"", *one.extras})
    return list(found.values())


def _wanted(held: Distribution, extras: set[str]) -> list[Requirement]:
    wanted = [Requirement(line) for line in held.requires or ()]
    return [one for one in wanted if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in extras)]
