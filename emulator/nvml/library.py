"""Where the compiled ``libnvidia-ml.so.1`` and ``nvidia-smi`` are, and how a host's folder gets them.

A wheel carries both, compiled when it was built. Where they are absent (an editable install, a checkout), they are
compiled at first use into a cache folder, named by a digest of the sources: the system's compiler is taken, else the
one that the PyPI package ``ziglang`` brings.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mews.emulator.nvml.compile import CUDA, LIBRARY, PRODUCTS, SMI, CompilerMissingError, build, cache_folder, compiler

__all__ = [
    "LIBRARY",
    "SMI",
    "available",
    "copy_products",
    "install",
    "install_copies",
    "install_driver_root",
    "library_path",
    "smi_path",
    "sources",
]

_HERE = Path(__file__).resolve().parent

NAMED_LIBRARIES = (
    "libnvidia-cfg", "libnvidia-ptxjitcompiler", "libnvidia-nvvm", "libnvidia-opencl", "libnvidia-allocator",
    "libcudadebugger", "libnvidia-gpucomp", "libnvidia-encode", "libnvcuvid", "libnvidia-opticalflow",
)  # fmt: skip
"""Further libraries of a driver, there by name alone."""
NAMED_PROGRAMS = ("nvidia-debugdump", "nvidia-persistenced", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
FIRMWARE = ("gsp_ga10x.bin", "gsp_tu10x.bin")


def sources() -> Path:
    """Return the folder of the C sources."""
    return _HERE / "c"


def library_path() -> Path:
    """Return the library, compiled now if need be. Raises CompilerMissingError, CompileError."""
    return _built() / LIBRARY


def smi_path() -> Path:
    """Return the program, compiled now if need be. Raises CompilerMissingError, CompileError."""
    return _built() / SMI


def available() -> bool:
    """Return whether there is a library or a compiler to make one."""
    if (_HERE / "bin" / LIBRARY).exists() or (cache_folder(sources()) / LIBRARY).exists():
        return True
    try:
        compiler()
    except CompilerMissingError:
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


def copy_products(folder: Path) -> None:
    """Copy all that is compiled, for an installation that has no compiler: it is used only where it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PRODUCTS:
        shutil.copy2(_built() / name, folder / name)


def _built() -> Path:
    packaged = _HERE / "bin"
    if all((packaged / name).exists() for name in PRODUCTS):
        return packaged
    cached = cache_folder(sources())
    if not all((cached / name).exists() for name in PRODUCTS):
        build(sources(), cached)
    return cached


def install_driver_root(root: Path, state: Path, driver_version: str) -> None:
    """Lay a folder out as a driver root: what NVIDIA's container tools look for below ``--driver-root``.

    They resolve links and load the real file, so the library lies there as a copy, with links to ``state`` and its
    socket beside it. ``libcuda`` is a stub that says so; the other libraries and programs are empty files that are
    looked for by name and never loaded here. Device nodes are not made: those are a host's (``dev``). Source:
    nvidia-container-toolkit 1.17, ``nvidia-ctk cdi generate --debug``.
    """
    libraries, programs = root / "usr" / "lib" / f"{os.uname().machine}-linux-gnu", root / "usr" / "bin"
    firmware = root / "lib" / "firmware" / "nvidia" / driver_version
    for folder in (libraries, programs, firmware, root / "etc" / "cdi", root / "run" / "cdi", root / "var"):
        folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(library_path(), libraries / f"libnvidia-ml.so.{driver_version}")
    shutil.copy2(_built() / CUDA, libraries / f"libcuda.so.{driver_version}")
    shutil.copy2(smi_path(), programs / SMI)
    for stem in NAMED_LIBRARIES:
        (libraries / f"{stem}.so.{driver_version}").touch()
    for name in NAMED_PROGRAMS:
        (programs / name).touch(mode=0o755)
    for name in FIRMWARE:
        (firmware / name).touch()
    _link(root / "var" / "run", "../run")
    _link(libraries / "libcuda.so", "libcuda.so.1")
    for stem in ("libnvidia-ml", "libcuda", *NAMED_LIBRARIES):
        _link(libraries / f"{stem}.so.1", f"{stem}.so.{driver_version}")
    _link(libraries / "nvml.state", str(state))
    _link(libraries / "nvml.state.sock", f"{state}.sock")


def _link(link: Path, target: str) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)
