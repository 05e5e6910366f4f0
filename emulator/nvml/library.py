"""Where the compiled ``libnvidia-ml.so.1`` and ``nvidia-smi`` are, and how a host's folder gets them.

A wheel carries both, compiled when it was built. Where they are absent (an editable install, a checkout), they are
compiled at first use into a cache folder, named by a digest of the sources: the system's compiler is taken, else the
one that the PyPI package ``ziglang`` brings.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mews.emulator.nvml.compile import LIBRARY, SMI, CompilerMissing, build, cache_folder, compiler

__all__ = [
    "LIBRARY",
    "SMI",
    "available",
    "install",
    "install_copies",
    "install_driver_root",
    "library_path",
    "smi_path",
    "sources",
]

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
    """Do as ``install``, with copies in place of links: for folders that are mounted elsewhere."""
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


def install_driver_root(root: Path, state: Path, driver_version: str) -> None:
    """What NVIDIA's container tools look for below ``--driver-root``: the libraries by version, and nvidia-smi.

    They resolve links and load the real file, so the library lies there as a copy, with a link to ``state`` beside
    it. ``libcuda.so.<version>`` is an empty file: it is looked for by name and never loaded here. Device nodes are not
    made: the tools want character devices below ``--dev-root``. Source: nvidia-container-toolkit 1.17,
    ``nvidia-ctk cdi generate --debug``.
    """
    libraries, programs = root / "usr" / "lib" / f"{os.uname().machine}-linux-gnu", root / "usr" / "bin"
    libraries.mkdir(parents=True, exist_ok=True)
    programs.mkdir(parents=True, exist_ok=True)
    shutil.copy2(library_path(), libraries / f"libnvidia-ml.so.{driver_version}")
    shutil.copy2(smi_path(), programs / SMI)
    (libraries / f"libcuda.so.{driver_version}").touch()
    links = (
        (LIBRARY, f"libnvidia-ml.so.{driver_version}"),
        ("libcuda.so.1", f"libcuda.so.{driver_version}"),
        ("nvml.state", str(state)),
    )
    for name, target in links:
        (libraries / name).unlink(missing_ok=True)
        (libraries / name).symlink_to(target)
