"""What the parts leave for one another on the API: annotations of pods and nodes, ConfigMaps. Pure reading and
writing; what cannot be read is as if it were not there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from mews.kube.api.objects import Object, annotations_of, containers_of, init_containers_of
from mews.kube.api.pod_requests import limits_of, pod_limit
from mews.kube.api.quantities import whole
from mews.systems.gpushare import names
from mews.systems.gpushare.policy import GpuUse, SharedGpu


def requested(pod: Object, resource: str) -> int:
    """Return what a pod asks for in all, by its limits."""
    return pod_limit(pod, resource, whole)


def container_requests(pod: Object, resource: str) -> list[tuple[str, int]]:
    """Return the containers that ask for it, in the order in which a kubelet serves them."""
    both = (*init_containers_of(pod), *containers_of(pod))
    asked = [(str(container["name"]), whole(limits_of(container).get(resource, 0))) for container in both]
    return [(name, amount) for name, amount in asked if amount > 0]


def _number(text: str | None, default: int = 0) -> int:
    try:
        return default if text is None else int(text)
    except ValueError:
        return default


def _json(text: str | None, kind: type) -> Any:
    try:
        read = json.loads(text or "")
    except ValueError:
        return kind()
    return read if isinstance(read, kind) else kind()


_GPU_FIELDS = {"index": int, "uuid": str, "memory": int}
_ENTRY_FIELDS = {**_GPU_FIELDS, "uid": str, "namespace": str, "name": str, "version": int}


def _is_row(row: Any, fields: Mapping[str, type]) -> bool:
    return isinstance(row, dict) and all(type(row.get(name)) is kind for name, kind in fields.items())


class Assumption(Struct, frozen=True):
    """What the extender decided about a pod, read from its annotations."""

    index: int
    uuid: str
    memory: int
    assigned: bool
    assumed_ns: int


def assumption(pod: Object) -> Assumption | None:
    """Return the decision on a pod, None where there is none."""
    found = annotations_of(pod)
    index = _number(found.get(names.INDEX, found.get(names.OLD_INDEX)), -1)
    memory = _number(found.get(names.POD_MEMORY))
    if index < 0 or memory <= 0:
        return None
    return Assumption(
        index,
        str(found.get(names.UUID, "")),
        memory,
        found.get(names.ASSIGNED) == "true",
        _number(found.get(names.ASSUME_TIME)),
    )


def decided(gpu: SharedGpu, memory: int, now_ns: int) -> dict[str, str]:
    """Return the annotations of a pod that is given that much of a GPU."""
    return {
        names.INDEX: str(gpu.index),
        names.OLD_INDEX: str(gpu.index),
        names.UUID: gpu.uuid,
        names.DEVICE_MEMORY: str(gpu.memory),
        names.POD_MEMORY: str(memory),
        names.ASSIGNED: "false",
        names.ASSUME_TIME: str(now_ns),
    }


def node_gpus(node: Object, memory_resource: str, count_resource: str) -> tuple[SharedGpu, ...]:
    """Return a node's GPUs as its plugin wrote them; under the public plugin, which does not, all of equal size."""
    written = annotations_of(node).get(names.NODE_GPUS)
    if written is not None:
        return tuple(
            SharedGpu(row["index"], row["uuid"], row["memory"], bool(row.get("usable", True)))
            for row in _json(written, list)
            if _is_row(row, _GPU_FIELDS)
        )
    capacity = (node.get("status") or {}).get("capacity") or {}
    memory, count = whole(capacity.get(memory_resource, 0)), whole(capacity.get(count_resource, 0))
    return tuple(SharedGpu(index, f"#{index}", memory // count) for index in range(count)) if memory else ()


def gpus_text(gpus: Iterable[SharedGpu]) -> str:
    """Return the node's annotation."""
    return json.dumps([asdict(gpu) for gpu in gpus], separators=(",", ":"))


def unhealthy_indices(config_map: Object | None) -> frozenset[int]:
    """Return the broken GPUs of ``unhealthy-gpu-<node>``: key ``gpus``, as in "0,2"."""
    text = str(((config_map or {}).get("data") or {}).get("gpus", ""))
    return frozenset(int(part) for part in text.split(",") if part.strip().isdigit())


class LedgerEntry(Struct, frozen=True):
    """A part of a GPU that was promised to a pod: ``version`` is the pod's resourceVersion at which alone the promise
    can become a binding."""

    uid: str
    namespace: str
    name: str
    index: int
    uuid: str
    memory: int
    version: int

    def use(self) -> GpuUse:
        """Return the same as a use."""
        return GpuUse(f"{self.namespace}/{self.name}", self.index, self.uuid, self.memory)


def ledger_entries(config_map: Object | None) -> dict[str, LedgerEntry]:
    """Return a node's ledger, by uid of the pod."""
    rows = _json(str(((config_map or {}).get("data") or {}).get("pods", "")), list)
    found = (LedgerEntry(**row) for row in rows if _is_row(row, _ENTRY_FIELDS) and row.keys() == _ENTRY_FIELDS.keys())
    return {entry.uid: entry for entry in found}


class RecordedAnswer(Struct, frozen=True):
    """What the container was told that has certain slices: the GPU in its environment, "" for none. ``pod`` (uid) and
    ``container`` are those that we took it for, and need not be those that the kubelet meant."""

    index: int
    uuid: str
    memory: int
    pod: str = ""
    container: str = ""

    @classmethod
    def of(cls, gpu: SharedGpu | None, pod: str, container: str) -> RecordedAnswer:
        """Return that GPU."""
        if gpu is None:
            return cls(-1, "", 0, pod, container)
        return cls(gpu.index, gpu.uuid, gpu.memory, pod, container)

    @property
    def gpu(self) -> SharedGpu | None:
        """None where it was told that there is none."""
        return SharedGpu(self.index, self.uuid, self.memory) if self.uuid else None


def slices_digest(ids: Iterable[str]) -> str:
    """Return a short name for a set of slices, of which a container may have tens of thousands."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:32]


def recorded_answers(config_map: Object | None) -> dict[str, RecordedAnswer]:
    """Return the answers in a node's ledger, by digest of the slices."""
    rows = _json(str(((config_map or {}).get("data") or {}).get("answers", "")), dict)
    found = {str(digest): row for digest, row in rows.items() if _is_row(row, _GPU_FIELDS)}
    return {
        digest: RecordedAnswer(
            row["index"], row["uuid"], row["memory"], str(row.get("pod", "")), str(row.get("container", ""))
        )
        for digest, row in found.items()
    }


def withheld_gpus(config_map: Object | None) -> frozenset[str]:
    """UUIDs of the GPUs of which nothing may be promised any more: somebody wants them whole."""
    rows = _json(str(((config_map or {}).get("data") or {}).get("withheld", "")), list)
    return frozenset(map(str, rows))


def ledger_data(
    entries: Mapping[str, LedgerEntry],
    withheld: frozenset[str] = frozenset(),
    answers: Mapping[str, RecordedAnswer] | None = None,
) -> dict[str, str]:
    """Return the ConfigMap's data."""
    parts: dict[str, Any] = {"pods": [asdict(entries[uid]) for uid in sorted(entries)]}
    if withheld:
        parts["withheld"] = sorted(withheld)
    if answers:
        parts["answers"] = {digest: asdict(answers[digest]) for digest in sorted(answers)}
    return {key: json.dumps(part, separators=(",", ":")) for key, part in parts.items()}
