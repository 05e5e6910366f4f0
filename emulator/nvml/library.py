"""Where the compiled ``libnvidia-ml.so.1`` and ``nvidia-smi`` are, and how a host's folder gets them.

A wheel carries both, compiled when it was built. Where they are absent (an editable install, a checkout), they are
compiled at first use into a cache folder, named by a digest of the sources: the system's compiler is taken, else the
one that the PyPI package ``ziglang`` brings.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from mews.emulator.nvml.compile import LIBRARY, SMI, CompilerMissing, build, cache_folder, compiler

_HERE = Path(__file__).resolve().parent


def sources() -> Path:
    """The folder of the C sources."""
    return _HERE / "c"


def library_path() -> Path:
    """The library, compiled now if need be. Raises CompilerMissing, CompileFailed."""
    return _built() / LIBRARY


def smi_path() -> Path:
    """The program, compiled now if need be. Raises CompilerMissing, CompileFailed."""
    return _built() / SMI


def available() -> bool:
    """Whether there is a library or a compiler to make one."""
    if (_HERE / "bin" / LIBRARY).exists() or (cache_folder(sources()) / LIBRARY).exists():
        return True
    try:
        compiler()
    except CompilerMissing:
        return False
    return True


def install(folder: Path) -> None:
    """Link the library and the program into a host's folder; with ``nvml.state`` beside they show that host.

    The folder serves as LD_LIBRARY_PATH and as an entry of PATH.
    """
    folder.mkdir(parents=True, exist_ok=True)
    links = ((LIBRARY, library_path()), ("libnvidia-ml.so", library_path()), (SMI, smi_path()))
    for name, target in links:
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def install_copies(folder: Path) -> None:
    """As ``install``, with copies instead of links: for folders that are mounted elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, target in ((LIBRARY, library_path()), (SMI, smi_path())):
        shutil.copy2(target, folder / name)


def _built() -> Path:
    packaged = _HERE / "bin"
    if (packaged / LIBRARY).exists() and (packaged / SMI).exists():
        return packaged
    cached = cache_folder(sources())
    if not (cached / SMI).exists() or not (cached / LIBRARY).exists():
        build(sources(), cached)
    return cached
