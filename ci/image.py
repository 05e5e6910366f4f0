"""Builds the image of ``mews``: ``make image``.

The wheels of the package and of what it needs are made on this machine, for the Python of the base image: the build
itself needs no network. ``--base`` names the base image, ``--tag`` the image; the tag is printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mews import __version__
from mews.project import DISTRIBUTION, DOCUMENTATION, REPOSITORY

ROOT = Path(__file__).resolve().parents[1]
WHEELS = ROOT / "build" / "image" / "wheels"
"""Where the Dockerfile copies them from."""
BASE_VARIABLE = "MEWS_BASE_IMAGE"
DEFAULT_BASE = "python:3.12-slim"
MOST_MB = 250
"""What the image may weigh, uncompressed."""
_PROBE = "import platform, sys; print(f'{sys.version_info[0]}.{sys.version_info[1]} {platform.machine()}')"


class ImageError(Exception):
    """What keeps the image from being made, in one line."""


def base_image() -> str:
    """Return the base image that the environment names, or the usual one."""
    return os.environ.get(BASE_VARIABLE) or DEFAULT_BASE


def build(base: str, tag: str) -> None:
    """Make the wheels and the image. Raises ImageError."""
    version, machine = _output(["docker", "run", "--rm", base, "python3", "-c", _PROBE]).split()
    make_wheels(version, machine)
    labels = [f"--label={key}={value}" for key, value in _labels()]
    # The classic builder is everywhere that Docker is; BuildKit's client part is not.
    env = {"DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0")}
    _output(["docker", "build", "--quiet", "--tag", tag, "--build-arg", f"BASE={base}", *labels, str(ROOT)], **env)


def make_wheels(version: str, machine: str) -> None:
    """Fill the folder with wheels for that Python on that machine. Raises ImageError."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    WHEELS.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    _output([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(WHEELS), str(ROOT)], MEWS_WHEEL=machine)
    [own] = WHEELS.glob("*.whl")
    wanted = f"{DISTRIBUTION}[cluster] @ {own.as_uri()}"
    pinned = ["--constraint", str(ROOT / "constraints.txt")]
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        _output([*pip, "wheel", "--quiet", "--wheel-dir", str(WHEELS), *pinned, wanted])
        return
    argv = [*pip, "download", "--quiet", "--only-binary=:all:", "--python-version", version, *pinned]
    argv += [f"--platform=manylinux_2_{minor}_{machine}" for minor in (17, 28)]
    _output([*argv, f"--platform=manylinux2014_{machine}", "--dest", str(WHEELS), wanted])


def _labels() -> Iterator[tuple[str, str]]:
    prefix = "org.opencontainers.image"
    yield f"{prefix}.title", "mews"
    yield f"{prefix}.version", __version__
    yield f"{prefix}.licenses", "Apache-2.0"
    yield f"{prefix}.source", REPOSITORY
    yield f"{prefix}.documentation", DOCUMENTATION


def _output(argv: list[str], **more: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **more})
    except FileNotFoundError as error:
        raise ImageError(f"{argv[0]}: is not on this machine") from error
    if done.returncode != 0:
        last = ((done.stdout + done.stderr).strip().splitlines() or ["(no message)"])[-1]
        raise ImageError(f"{' '.join(argv[:3])}: exit code {done.returncode}: {last}")
    return done.stdout


def main(arguments: list[str]) -> int:
    """0, or 1 with one line."""
    parser = argparse.ArgumentParser(prog="python -m ci.image", description="Build the image of mews.")
    parser.add_argument("--base", default=base_image(), help="build on this image")
    parser.add_argument("--tag", default=f"mews:{__version__}", help="give the image this tag")
    options = parser.parse_args(arguments)
    try:
        build(options.base, options.tag)
    except ImageError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{options.tag}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
