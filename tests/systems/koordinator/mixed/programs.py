"""Koordinator's own programs, built from its Go module once, into a cache. None of them is distributed."""

from __future__ import annotations

from pathlib import Path

from tests.upstream.building import ModuleTests, cache_folder, run_go

VERSION = "v1.6.0"
PROGRAMS = ("koord-scheduler", "koord-manager")
"""Those that run on emulated nodes (docs/koordinator.md says why koordlet does not)."""
_MODULE = ModuleTests("github.com/koordinator-sh/koordinator", VERSION, "")


def place(name: str) -> Path:
    """Where the program is once it was built."""
    return cache_folder() / f"{name}-{VERSION}"


def build(name: str) -> Path:
    """The program, built where it is not there yet.

    Raises NotBuiltError with the reason.
    """
    out = place(name)
    if not out.is_file():
        part = out.with_suffix(".part")
        run_go(
            "build", "-ldflags", "-s -w", "-o", str(part), f"./cmd/{name}", cwd=_MODULE.folder(), flags="-mod=readonly"
        )
        part.replace(out)
    return out
