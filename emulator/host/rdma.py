"""``/sys/class/infiniband`` and what RDMA programs read beside it, and ``/dev/infiniband``: of every function that
mlx5_core has, virtual ones too (Documentation/ABI/stable/sysfs-class-infiniband of the Linux kernel).

The device's own folder has ``infiniband/mlx5_N``, ``infiniband_verbs/uverbsN`` and ``infiniband_mad/umadN``; the
classes link there. Network interfaces (``net``) there are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from mews.emulator.host.entries import File, Folder, Link, Node
from mews.emulator.host.function import Function
from mews.emulator.host.host import Host

VERBS_MAJOR, VERBS_MINOR, MAD_MINOR = 231, 192, 0
"""Character devices of ``uverbsN`` are 231:192+N, of ``umadN`` 231:N."""

MISC_MAJOR, RDMA_CM_MINOR = 10, 58
"""Of ``rdma_cm``, as one kernel gave them: its minor is taken when the module is loaded."""

_NAMES = {"infiniband": "mlx5_", "infiniband_verbs": "uverbs", "infiniband_mad": "umad"}


def rdma_classes(host: Host) -> dict[str, Node]:
    """Return the folders of ``/sys/class``; without an RDMA device there are none, as without their modules."""
    found = [f for f in host.bus.on_bus() if f.rdma is not None]
    return {kind: Folder(lambda kind=kind: _class(kind, found)) for kind in _NAMES} if found else {}  # type: ignore[misc]


def rdma_folders(function: Function) -> dict[str, Node]:
    """Return what the device's own folder has."""
    if function.rdma is None:
        return {}
    number = function.rdma
    inner = {
        "infiniband": lambda: _device(function),
        "infiniband_verbs": lambda: _character(number, VERBS_MINOR + number, abi=1),
        "infiniband_mad": lambda: _character(number, MAD_MINOR + number, abi=None),
    }
    return {
        kind: Folder(lambda name=f"{_NAMES[kind]}{number}", below=below: {name: Folder(below)})  # type: ignore[misc]
        for kind, below in inner.items()
    }


def rdma_nodes(host: Host) -> dict[str, Node]:
    """``/dev/infiniband``: empty files, as all of ``/dev``."""
    numbers = [f.rdma for f in host.bus.on_bus() if f.rdma is not None]
    if not numbers:
        return {}
    names = ["rdma_cm", *(f"{kind}{number}" for number in numbers for kind in ("uverbs", "umad"))]
    return {"infiniband": Folder(lambda: {name: File(lambda: b"", 0o666) for name in names})}


def device_numbers(name: str) -> tuple[int, int]:
    """Major and minor number of a node of ``/dev/infiniband``."""
    if name == "rdma_cm":
        return MISC_MAJOR, RDMA_CM_MINOR
    kind = name.rstrip("0123456789")
    return VERBS_MAJOR, int(name.removeprefix(kind)) + (VERBS_MINOR if kind == "uverbs" else MAD_MINOR)


def _class(kind: str, found: list[Function]) -> Mapping[str, Node]:
    links: dict[str, Node] = {}
    for function in found:
        name = f"{_NAMES[kind]}{function.rdma}"
        links[name] = Link(f"../../devices/{function.path}/{kind}/{name}")
    return links


def _device(function: Function) -> Mapping[str, Node]:
    guid, alive = _guid(function), function.link and not function.lost
    port = {
        "state": "4: ACTIVE" if alive else "1: DOWN",
        "phys_state": "5: LinkUp" if alive else "3: Disabled",
        "rate": "200 Gb/sec (4X HDR)",
        "link_layer": "InfiniBand",
        "lid": f"0x{int(guid[-4:], 16) % 0xBFFF + 1:x}",
        "lid_mask_count": "0",
        "sm_lid": "0x1",
        "sm_sl": "0",
        "cap_mask": "0x2651e848",
    }
    gids = Folder(lambda: {"0": _text(f"fe80:0000:0000:0000:{guid}")})
    ports = Folder(lambda: {"1": Folder(lambda: {**{name: _text(text) for name, text in port.items()}, "gids": gids})})
    return {
        "node_type": _text("1: CA"),
        "node_guid": _text(guid),
        "sys_image_guid": _text(_guid(function.physical or function)),
        "node_desc": _text(f"mlx5_{function.rdma}"),
        "fw_ver": _text("20.31.1014"),
        "hca_type": _text(f"MT{function.card.device}"),
        "hw_rev": _text("0"),
        "board_id": _text("MT_0000000223"),
        "device": Link(f"../../../{function.bdf}"),
        "ports": ports,
    }


def _character(number: int, minor: int, *, abi: int | None) -> Mapping[str, Node]:
    files: dict[str, Node] = {"dev": _text(f"{VERBS_MAJOR}:{minor}"), "ibdev": _text(f"mlx5_{number}")}
    return files if abi is None else {**files, "abi_version": _text(abi)}


def _guid(function: Function) -> str:
    """Return that of Mellanox' block, and by the device's own ID."""
    digits = f"ec0d9a03{crc32(function.device.uuid.encode()):08x}"
    return ":".join(digits[at : at + 4] for at in range(0, 16, 4))


def _text(value: object) -> File:
    content = f"{value}\n".encode()
    return File(lambda: content)
