"""Compiling the C sources: used when a wheel is built and, in a checkout, at first use.

Stands alone on purpose (no import of mews): the build hook loads this file before the package exists.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

LIBRARY = "libnvidia-ml.so.1"
SMI = "nvidia-smi"
CUDA = "libcuda.so.1"
PRODUCTS = (LIBRARY, SMI, CUDA)
"""What is compiled."""

FLAGS = ("-std=gnu11", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter")
GLIBC = "2.17"


class CompilerMissingError(RuntimeError):
    """There is neither a system compiler nor ziglang; the message says how to get one."""


class CompileError(RuntimeError):
    """The compiler did not like it; the message carries what it said."""


def cache_folder(sources: Path) -> Path:
    """Return where a checkout keeps what it compiled: named by a digest of the sources and the machine."""
    base = os.environ.get("MEWS_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    digest = hashlib.sha256(os.uname().machine.encode())
    for path in [*sorted(sources.rglob("*.[chm]*")), Path(__file__)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return Path(base) / "mews" / f"nvml-{digest.hexdigest()[:16]}"


def system_compiler() -> tuple[str, ...] | None:
    """``$CC``, cc, gcc or clang, whichever is there first."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        words = name.split()
        if words and shutil.which(words[0]):
            return tuple(words)
    return None


def portable_compiler(machine: str) -> tuple[str, ...] | None:
    """ziglang for that machine, whose results run on every Linux with the glibc of ``GLIBC`` or a later one; None where
    it is not installed."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    return (sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.{GLIBC}")


def compiler() -> tuple[str, ...]:
    """Return the command of the compiler. Raises CompilerMissingError."""
    found = system_compiler() or portable_compiler(os.uname().machine)
    if found is not None:
        return found
    raise CompilerMissingError(
        "libnvidia-ml.so.1 and nvidia-smi: not compiled yet, and there is no C compiler; "
        "install gcc (apt install gcc) or run `pip install ziglang`, then try again"
    )


def build(sources: Path, folder: Path, *, extra: Sequence[str] = (), cc: Sequence[str] | None = None) -> None:
    """Compile all of ``PRODUCTS`` into a folder, whole or not at all, with ``compiler()`` or the given one.

    Raises CompilerMissingError, CompileError.
    """
    cc = cc or compiler()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".nvml-") as made:
        part = Path(made)
        shared = ("-shared", f"-Wl,-soname,{LIBRARY}", f"-Wl,--version-script={sources / 'lib' / 'exports.map'}")
        _compile(cc, [*FLAGS, *extra, *shared], sources / "lib", part / LIBRARY)
        _compile(cc, [*FLAGS, *extra], sources / "smi", part / SMI)
        _compile(cc, [*FLAGS, *extra, "-shared", f"-Wl,-soname,{CUDA}"], sources / "cuda", part / CUDA)
        folder.mkdir(exist_ok=True)
        for name in reversed(PRODUCTS):
            (part / name).replace(folder / name)


def _compile(cc: Sequence[str], flags: Sequence[str], sources: Path, target: Path) -> None:
    files = [str(path) for path in sorted(sources.glob("*.c"))]
    command = [*cc, *flags, f"-I{sources.parent}", "-o", str(target), *files, "-ldl", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise CompileError(f"{' '.join(command[:3])} …: exit {done.returncode}\n{done.stderr[-4000:]}")
