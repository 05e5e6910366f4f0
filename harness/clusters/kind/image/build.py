"""Builds the component image: wheels are made on this machine, so that the build itself needs no network.

The tag is a hash of all that goes in: what did not change is neither built nor loaded again. Blocking.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from mews.emulator.nvml import library
from mews.emulator.nvml.compile import CompileError, CompilerMissingError
from mews.harness.clusters.kind.tools import BASE_IMAGE, call
from mews.harness.errors import RequirementError
from mews.harness.package import copy_to, sources

IMAGE = "MEWS_COMPONENT_IMAGE"
"""Environment: an image that is there already, instead of one that is built."""
REPOSITORY = "mews.local/components"
DEFAULT_BASE = "python:3.12-slim"

_DATA = files("mews.harness.clusters.kind.image")
_PROBE = "import platform, sys; print(f'{sys.version_info[0]}.{sys.version_info[1]} {platform.machine()}')"


def component_image(base: str | None = None, env: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the tag of the image, built if it is not there yet; the environment may name another. What it starts bears
    ``env``, so that it can be found and ended.

    Raises RequirementError for a base image that is not there, for wheels that cannot be had, and for what Docker
    refuses.
    """
    if os.environ.get(IMAGE):
        return os.environ[IMAGE]
    base = base or os.environ.get(BASE_IMAGE) or DEFAULT_BASE
    identity = _base_identity(base)
    tag = f"{REPOSITORY}:{_digest(identity)}"
    if call(["docker", "image", "ls", "--quiet", tag]).strip():
        return tag
    version, machine = call(["docker", "run", "--rm", base, "python3", "-c", _PROBE]).split()
    wheels = _wheels(version, machine, env)
    with tempfile.TemporaryDirectory(prefix="mews-image-") as folder:
        context = Path(folder)
        for name in ("Dockerfile", "requirements.txt"):
            (context / name).write_text(_DATA.joinpath(name).read_text("utf-8"), encoding="utf-8")
        shutil.copytree(wheels, context / "wheels")
        copy_to(context / "package" / "mews")
        with contextlib.suppress(CompilerMissingError, CompileError):
            # Without a compiler on this machine containers see no NVML, and their devices in their environment only.
            library.copy_products(context / "package" / "mews" / "emulator" / "nvml" / "bin")
        # The classic builder is everywhere that Docker is; BuildKit's client part is not.
        argv = ["docker", "build", "--quiet", "--tag", tag, "--build-arg", f"BASE={base}", str(context)]
        call(argv, timeout_s=600.0, env={**env, "DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0")})
    return tag


def _base_identity(base: str) -> str:
    try:
        return call(["docker", "image", "inspect", "--format", "{{.Id}}", base]).strip()
    except RequirementError:
        try:
            call(["docker", "pull", "--quiet", base], timeout_s=300.0)
        except RequirementError as error:
            raise RequirementError(f"base image {base}: {error}; name another one in {BASE_IMAGE}") from error
        return call(["docker", "image", "inspect", "--format", "{{.Id}}", base]).strip()


def _digest(identity: str) -> str:
    """Return that of the base, the recipe and every file of the package."""
    digest = hashlib.sha256(identity.encode())
    for name in ("Dockerfile", "requirements.txt"):
        digest.update(_DATA.joinpath(name).read_bytes())
    for inside, path in sources():
        digest.update(inside.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _wheels(version: str, machine: str, env: Mapping[str, str]) -> Path:
    """Return a folder of wheels for that Python, kept in the user's cache.

    Raises RequirementError.
    """
    requirements = _DATA.joinpath("requirements.txt").read_text("utf-8")
    key = hashlib.sha256(f"{version} {machine} {requirements}".encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mews" / f"wheels-{key}"
    if cache.exists():
        return cache
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        making = tempfile.TemporaryDirectory(prefix="wheels-", dir=cache.parent)
    except OSError as error:
        raise RequirementError(
            f"{cache.parent}: cannot be written: {error.strerror}; set XDG_CACHE_HOME or HOME"
        ) from error
    with making as folder:
        made = Path(folder) / "wheels"
        wanted = Path(folder) / "requirements.txt"
        wanted.write_text(requirements, encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
            argv = [*pip, "wheel", "--quiet", "--wheel-dir", str(made), "-r", str(wanted)]
        else:
            argv = [*pip, "download", "--quiet", "--only-binary=:all:", "--python-version", version]
            argv += [f"--platform=manylinux_2_{minor}_{machine}" for minor in (17, 28)]
            argv += [f"--platform=manylinux2014_{machine}", "--dest", str(made), "-r", str(wanted)]
        try:
            call(argv, timeout_s=600.0, env=env)
        except RequirementError as error:
            raise RequirementError(f"the wheels of the component image cannot be downloaded: {error}") from error
        try:
            made.rename(cache)
        except OSError:
            if not cache.is_dir():
                raise
            # Another run was quicker; its wheels are as good.
    return cache


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{component_image()}\n")
    except RequirementError as error:
        sys.exit(str(error))
