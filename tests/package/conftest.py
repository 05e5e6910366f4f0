"""What is built and installed once for all tests of a session, its xdist workers included."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.package.environment import Environment, lend, made

ROOT = Path(__file__).resolve().parents[2]
UNREACHABLE = (
    "NewConnectionError",
    "Temporary failure",
    "ConnectTimeout",
    "No matching distribution found for hatchling",
)


@dataclass(frozen=True, slots=True)
class Distributions:
    """The files that an index would get."""

    sdist: Path
    wheel: Path


@contextmanager
def once(folder: Path) -> Iterator[bool]:
    """Whether what lies in the folder is still to be made; others wait meanwhile."""
    with (folder.with_suffix(".lock")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder.with_suffix(".done")
        yield not done.exists()
        done.touch()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder that all workers of the session have."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if hasattr(request.config, "workerinput") else base


@pytest.fixture(scope="session")
def distributions(shared: Path) -> Distributions:
    """The sdist, and the wheel that is built from it: not from this tree."""
    pytest.importorskip("build", reason="build is not installed; pip install 'falcon-mews[test]' brings it")
    folder = shared / "package-dist"
    with once(folder) as to_do:
        if to_do:
            command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
            done = subprocess.run(command, capture_output=True, text=True)
            said = done.stdout + done.stderr
            if done.returncode != 0 and any(word in said for word in UNREACHABLE):
                pytest.skip("the package index cannot be reached: a build environment cannot be made")
            assert done.returncode == 0, said[-6000:]
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Distributions(sdist, wheel)


def installed_as(
    shared: Path, name: str, distributions: Distributions, *extras: str, beside: tuple[str, ...] = ()
) -> Environment:
    """The environment of that name with the wheel and its extras; what the extras ``beside`` name is there, too."""
    root = shared / f"package-{name}"
    with once(root) as to_do:
        if to_do:
            environment = made(sys.executable, root)
            lend(environment, distributions.wheel, (*extras, *beside))
            # What is lent satisfies the requirements, or pip fails: there is no index
            wanted = f"falcon-mews[{','.join(extras)}] @ {distributions.wheel.as_uri()}"
            environment.check(str(environment.bin / "pip"), "install", "--quiet", "--no-index", wanted)
    return Environment(root / "venv", root / "elsewhere")


@pytest.fixture(scope="session")
def installed(shared: Path, distributions: Distributions) -> Environment:
    """``pip install 'falcon-mews[cluster,train]'`` in an environment outside the repository."""
    return installed_as(shared, "full", distributions, "cluster", "train")


@pytest.fixture(scope="session")
def base_only(shared: Path, distributions: Distributions) -> Environment:
    """``pip install falcon-mews`` in an environment outside the repository: no extra."""
    return installed_as(shared, "base", distributions)
