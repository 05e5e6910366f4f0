"""The rooms that faults are planted in, and their files."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ROOMS: dict[str, tuple[str, ...]] = {
    "kubecomp": ("systems/kubecomp",),
    "kod2": ("systems/kod2",),
    "gpushare": ("systems/gpushare",),
    "koordinator": ("systems/koordinator",),
    "kubelet": ("kube/emulated/kubelet",),
    "scheduling": ("kube/scheduling",),
    "controllers": ("kube/emulated/controllers",),
    "chassis": ("emulator/chassis",),
    "hosts": ("emulator/host", "emulator/hardware"),
    "dialects": ("emulator/dialects", "kube/chassis"),
}

_BOOKS = ("allocation_books", "job_books", "promise_books")
_NOT = ("experiment", "simulation", "simulated_pool", "invariants", "laws", "journal", "metrics", "prometheus", *_BOOKS)
"""Folders and files of a room that judge runs, measure them or play traces: no components of a cluster."""


def files_of(room: str) -> list[str]:
    """The sources of that room, relative to the repository."""
    found = (path.relative_to(ROOT) for folder in ROOMS[room] for path in (ROOT / folder).rglob("*.py"))
    return sorted(str(path) for path in found if not {*path.parts[1:-1], path.stem} & {*_NOT})


def module_of(file: str) -> str:
    """The name under which such a file is imported."""
    parts = Path(file).with_suffix("").parts
    return ".".join(("mews", *(parts[:-1] if parts[-1] == "__init__" else parts)))
