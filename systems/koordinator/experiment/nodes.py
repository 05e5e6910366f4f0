"""Nodes whose GPUs are joined as published servers join theirs. Pure."""

from __future__ import annotations

from mews.systems.koordinator.devices import DeviceLink, DevicePlace, NodeDevice, NodeDeviceReport
from mews.systems.koordinator.usage import gpu_resources

GIB = 2**30
_NV = 25_000
_PCIE = {"PIX": 15_760, "PXB": 14_972, "NODE": 11_032, "SYS": 7_880}

_CUBE_MESH = (
    # DGX-1 with V100: links per pair of GPUs (nvidia-smi topo -m), else PCIe
    "0 1 1 2 2 - - -",
    "1 0 2 1 - 2 - -",
    "1 2 0 2 - - 1 -",
    "2 1 2 0 - - - 1",
    "2 - - - 0 1 1 2",
    "- 2 - - 1 0 2 1",
    "- - 1 - 1 2 0 2",
    "- - - 1 2 1 2 0",
)


def _node(name: str, count: int, links: list[DeviceLink], per_switch: int = 2) -> NodeDeviceReport:
    half = max(count // 2, 1)
    gpus = [
        NodeDevice(
            "gpu",
            minor,
            f"GPU-{name}-{minor}",
            True,
            gpu_resources(16 * GIB),
            DevicePlace(minor // half, minor // half, f"switch-{minor // per_switch}", f"0000:{minor:02x}:00.0"),
        )
        for minor in range(count)
    ]
    nics = [
        NodeDevice(
            "rdma", each, f"NIC-{name}-{each}", True, {"koordinator.sh/rdma": 100}, DevicePlace(0, 0, f"switch-{each}")
        )
        for each in range(count // per_switch)
    ]
    return NodeDeviceReport(name, (*gpus, *nics), tuple(links))


def cube_mesh() -> NodeDeviceReport:
    """Eight V100: pairs have two NVLinks, one, or none."""
    links = []
    for a, row in enumerate(_CUBE_MESH):
        for b, word in enumerate(row.split()):
            if a < b:
                speed = int(word) * _NV if word != "-" else _PCIE["SYS"]
                links.append(DeviceLink("gpu", (a, b), speed, f"NV{word}" if word != "-" else "SYS"))
    return _node("cube-mesh", 8, links)


def nvswitch(count: int = 8) -> NodeDeviceReport:
    """A100 behind NVSwitches: every pair as fast."""
    links = [DeviceLink("gpu", (a, b), 12 * _NV, "NV12") for a in range(count) for b in range(a + 1, count)]
    return _node("nvswitch", count, links)


def pcie_only(count: int = 8) -> NodeDeviceReport:
    """Pairs below a switch, switches below two sockets."""
    links = []
    for a in range(count):
        for b in range(a + 1, count):
            word = "PIX" if a // 2 == b // 2 else "NODE" if a // (count // 2) == b // (count // 2) else "SYS"
            links.append(DeviceLink("gpu", (a, b), _PCIE[word], word))
    return _node("pcie", count, links)
