"""How the GPUs of a host are joined: matrices in the words of ``nvidia-smi topo -m``.

``NV<n>``: n NVLinks; ``PIX``: one PCIe bridge; ``PXB``: several bridges; ``PHB``: the same host bridge; ``NODE``: the
same NUMA node; ``SYS``: across NUMA nodes. Sources: NVIDIA's DGX-1 V100 white paper (hybrid cube mesh: six links per
GPU), the DGX A100 user guide (twelve links per GPU into NVSwitch), ``nvidia-smi topo --help`` for the words.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

SELF = "X"
PCIE_LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""From the nearest to the farthest."""

Matrix = tuple[tuple[str, ...], ...]


class LinkMatrix(Struct, frozen=True):
    """How many NVLinks join the GPUs in a server, a row and a column for each in the order of its hardware file;
    ``switched``: they end at switches, so that a pair has as many as one of it."""

    counts: tuple[tuple[int, ...], ...]
    switched: bool = False


_CUBE_MESH_LINKS = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2,
    (1, 2): 2, (1, 3): 1, (1, 5): 2,
    (2, 3): 2, (2, 6): 1,
    (3, 7): 1,
    (4, 5): 1, (4, 6): 1, (4, 7): 2,
    (5, 6): 2, (5, 7): 1,
    (6, 7): 2,
}  # fmt: skip
"""NVLinks between the GPUs of a DGX-1 V100; six at every GPU."""


CUBE_MESH_GPUS = 8


def cube_mesh_links() -> LinkMatrix:
    """Return the hybrid cube mesh of eight V100."""
    size = range(CUBE_MESH_GPUS)
    return LinkMatrix(tuple(tuple(_CUBE_MESH_LINKS.get((min(a, b), max(a, b)), 0) for b in size) for a in size))


def nvswitch_links(links: Sequence[int]) -> LinkMatrix:
    """GPUs that all have their links, so many each, on NVSwitch."""
    size = range(len(links))
    return LinkMatrix(tuple(tuple(0 if a == b else min(links[a], links[b]) for b in size) for a in size), switched=True)


def no_links(gpus: int) -> LinkMatrix:
    """PCIe alone."""
    return LinkMatrix(((0,) * gpus,) * gpus)


def cube_mesh() -> Matrix:
    """Return the hybrid cube mesh of eight V100: pairs without a link meet across the sockets."""
    counts = cube_mesh_links().counts
    return tuple(
        tuple(SELF if a == b else f"NV{links}" if links else "SYS" for b, links in enumerate(row))
        for a, row in enumerate(counts)
    )


def nvswitch(count: int, links: int = 12) -> Matrix:
    """Return every GPU with all its links on NVSwitch (A100: 12, H100 and B200: 18)."""
    return tuple(tuple(SELF if a == b else f"NV{links}" for b in range(count)) for a in range(count))


def pcie(numa_nodes: tuple[int, ...]) -> Matrix:
    """PCIe only: GPUs of one NUMA node behind switches of one host bridge, the others across the sockets."""

    def level(a: int, b: int) -> str:
        if a == b:
            return SELF
        return "PXB" if numa_nodes[a] == numa_nodes[b] else "SYS"

    return tuple(tuple(level(a, b) for b in range(len(numa_nodes))) for a in range(len(numa_nodes)))
