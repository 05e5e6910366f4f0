"""What the pool driver asks of a node, and what the node answers: annotations of the node, one writer each. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from mews.kube.api.objects import Object
from mews.systems.pooldra.names import REPORT, REQUESTS


class PoolRefusal(Struct, frozen=True):
    """A node keeps a device that it was asked for."""

    request: str
    reason: str


class NodeRequests(Struct, frozen=True):
    """``pool``: the UUIDs of all devices that chassis may put on this node, so that its driver knows its own from
    theirs. ``leave``: UUID -> request: the host is to let go of the device."""

    pool: tuple[str, ...] = ()
    leave: Mapping[str, str] = field(default_factory=dict)


class PoolNodeReport(Struct, frozen=True):
    """``shown``: UUID -> the node's name of a device that NVML lists. ``off``: UUID -> the request for which the host
    let go of it; ``refused``: UUID -> why it did not. ``divided``: UUIDs of GPUs in MIG mode, which no claim gets."""

    shown: Mapping[str, str] = field(default_factory=dict)
    off: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, PoolRefusal] = field(default_factory=dict)
    divided: tuple[str, ...] = ()


RecordT = TypeVar("RecordT", NodeRequests, PoolNodeReport)


def annotation(value: NodeRequests | PoolNodeReport) -> str:
    """Return the text of an annotation: the same for equal values."""
    return json.dumps(msgspec.to_builtins(value), sort_keys=True, separators=(",", ":"))


def _read(node: Object | None, name: str, kind: type[RecordT]) -> RecordT | None:
    text = ((node or {}).get("metadata", {}).get("annotations") or {}).get(name)
    return _decoded(str(text), kind) if text else None


@lru_cache(maxsize=1024)
def _decoded(text: str, kind: type[RecordT]) -> RecordT | None:
    """Texts are read more often than they change; who reads one must not change it."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        return None  # Somebody else wrote there; its owner writes again.


def requests_of(node: Object | None) -> NodeRequests | None:
    """Return what the pool driver wrote; None where it has not."""
    return _read(node, REQUESTS, NodeRequests)


def report_of(node: Object | None) -> PoolNodeReport | None:
    """Return what the node's driver wrote; None where it has not."""
    return _read(node, REPORT, PoolNodeReport)
