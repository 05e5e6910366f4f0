"""How the GPUs of a host are joined: matrices in the words of ``nvidia-smi topo -m``.

``NV<n>``: n NVLinks; ``PIX``: one PCIe bridge; ``PXB``: several bridges; ``PHB``: the same host bridge; ``NODE``: the
same NUMA node; ``SYS``: across NUMA nodes. Sources: NVIDIA's DGX-1 V100 white paper (hybrid cube mesh: six links per
GPU), the DGX A100 user guide (twelve links per GPU into NVSwitch), ``nvidia-smi topo --help`` for the words.
"""

from __future__ import annotations

SELF = "X"

Matrix = tuple[tuple[str, ...], ...]

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


def cube_mesh() -> Matrix:
    """The hybrid cube mesh of eight V100: pairs without a link meet across the sockets."""

    def level(a: int, b: int) -> str:
        if a == b:
            return SELF
        links = _CUBE_MESH_LINKS.get((min(a, b), max(a, b)))
        return f"NV{links}" if links else "SYS"

    return tuple(tuple(level(a, b) for b in range(8)) for a in range(8))


def nvswitch(count: int, links: int = 12) -> Matrix:
    """Every GPU with all its links on NVSwitch (A100: 12, H100 and B200: 18)."""
    return tuple(tuple(SELF if a == b else f"NV{links}" for b in range(count)) for a in range(count))


def pcie(numa_nodes: tuple[int, ...]) -> Matrix:
    """PCIe only: GPUs of one NUMA node behind switches of one host bridge, the others across the sockets."""

    def level(a: int, b: int) -> str:
        if a == b:
            return SELF
        return "PXB" if numa_nodes[a] == numa_nodes[b] else "SYS"

    return tuple(tuple(level(a, b) for b in range(len(numa_nodes))) for a in range(len(numa_nodes)))
