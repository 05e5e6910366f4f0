"""ContainerAllocateResponse as protobuf bytes, as the checkpoint holds it.

Field numbers: k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1 (our text of it in mews/kube/deviceplugin/pb). Written by
hand, so that a run in virtual time loads no protobuf runtime.
"""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.deviceplugin.port import Allocation, DeviceNode, Mount

_ENVS, _MOUNTS, _DEVICES, _ANNOTATIONS, _CDI = 1, 2, 3, 4, 5
_VARINT, _BYTES = 0, 2


def encode(allocation: Allocation) -> bytes:
    """Return the message's bytes; maps in their own order."""
    parts = [
        *(_message(_ENVS, _strings(pair)) for pair in allocation.envs.items()),
        *(_message(_MOUNTS, _mount(mount)) for mount in allocation.mounts),
        *(_message(_DEVICES, _strings((d.container_path, d.host_path, d.permissions))) for d in allocation.devices),
        *(_message(_ANNOTATIONS, _strings(pair)) for pair in allocation.annotations.items()),
        *(_message(_CDI, _strings((name,))) for name in allocation.cdi_devices),
    ]
    return b"".join(parts)


def decode(data: bytes) -> Allocation:
    """Return the message of those bytes; unknown fields are skipped.

    Raises ValueError for bytes that are no such message.
    """
    envs: dict[str, str] = {}
    annotations: dict[str, str] = {}
    mounts: list[Mount] = []
    devices: list[DeviceNode] = []
    cdi: list[str] = []
    for number, value in _fields(data):
        if not isinstance(value, bytes) or not _ENVS <= number <= _CDI:
            continue
        inner = dict(_fields(value))
        first, second, third = (_text(inner.get(n, b"")) for n in (1, 2, 3))
        if number == _ENVS:
            envs[first] = second
        elif number == _MOUNTS:
            mounts.append(Mount(first, second, bool(inner.get(3, 0))))
        elif number == _DEVICES:
            devices.append(DeviceNode(first, second, third))
        elif number == _ANNOTATIONS:
            annotations[first] = second
        else:
            cdi.append(first)
    return Allocation(envs, tuple(mounts), tuple(devices), annotations, tuple(cdi))


def _mount(mount: Mount) -> bytes:
    flag = bytes((3 << 3 | _VARINT, 1)) if mount.read_only else b""
    return _strings((mount.container_path, mount.host_path)) + flag


def _strings(values: tuple[str, ...]) -> bytes:
    """Fields 1, 2, 3…: strings; an empty one is left out."""
    return b"".join(_message(number, text.encode()) for number, text in enumerate(values, 1) if text)


def _message(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(value: bytes | int) -> str:
    return value.decode() if isinstance(value, bytes) else ""


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        if key & 7 == _VARINT:
            number, at = _read_varint(data, at)
            yield key >> 3, number
        elif key & 7 == _BYTES:
            length, at = _read_varint(data, at)
            if at + length > len(data):
                raise ValueError("ContainerAllocateResponse: truncated")
            yield key >> 3, data[at : at + length]
            at += length
        else:
            raise ValueError(f"ContainerAllocateResponse: wire type {key & 7} at byte {at}")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("ContainerAllocateResponse: truncated")
