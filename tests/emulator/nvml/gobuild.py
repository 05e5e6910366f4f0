"""Go programs of the tests, built once into the user's cache folder."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD_LIMIT_S = 300
UNREACHED = ("dial tcp", "proxy", "C compiler", "requires go >=", "toolchain")


def built(source, package=".", *, cgo=True):
    """The program of that folder, or of another package that its module needs, as it is, with C or static; without Go
    or the modules it needs the test is skipped."""
    told = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(source.iterdir()))).hexdigest()[:16]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = base / "mews" / f"{source.name}-{told}" / (source.name if package == "." else package.rpartition("/")[2])
    if program.exists():
        return program
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    program.parent.mkdir(parents=True, exist_ok=True)
    part = program.with_suffix(f".{os.getpid()}")
    command = ["go", "build", "-o", str(part), package]
    environment = {**os.environ, "CGO_ENABLED": str(int(cgo)), "GOFLAGS": "-mod=readonly"}
    try:
        subprocess.run(
            command, cwd=source, check=True, capture_output=True, text=True, timeout=BUILD_LIMIT_S, env=environment
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"go build took more than {BUILD_LIMIT_S} s")
    except subprocess.CalledProcessError as error:
        if any(word in error.stderr for word in UNREACHED):
            pytest.skip(f"go build: {error.stderr.splitlines()[-1]}")
        raise AssertionError(error.stderr) from error
    part.replace(program)
    return program
