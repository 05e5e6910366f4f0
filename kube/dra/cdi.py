"""CDI devices resolved to what a container gets (tags.cncf.io/container-device-interface, SPEC.md 0.6). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mews.kube.deviceplugin.port import Allocation, ContainerHook, DeviceNode, Mount
from mews.kube.dra.port import CdiSpec


class UnresolvableDevicesError(Exception):
    """No specification has these devices; the text is the runtime's."""


JOINED = "mews.dev/joined"
"""An annotation of a specification: variables whose values are joined by commas over a container's devices, each once.
In the emulator such a variable stands for device nodes, of which a container has those of all its devices."""


def device_id(kind: str, name: str) -> str:
    """``vendor/class=name``."""
    return f"{kind}={name}"


def injected(ids: Sequence[str], specs: Iterable[CdiSpec]) -> Allocation:
    """Return the edits of all devices in their order, after those of each specification that has one, once. A runtime
    has nothing of them left to resolve.

    Raises UnresolvableDevicesError.
    """
    known: dict[str, tuple[CdiSpec, Mapping[str, Any]]] = {}
    for spec in specs:
        for device in spec.get("devices") or ():
            known[device_id(str(spec["kind"]), str(device["name"]))] = (spec, device)
    wanted = list(dict.fromkeys(ids))
    missing = [each for each in wanted if each not in known]
    if missing:
        raise UnresolvableDevicesError(f"CDI device injection failed: unresolvable CDI devices {', '.join(missing)}")
    envs: dict[str, str] = {}
    mounts: list[Mount] = []
    nodes: list[DeviceNode] = []
    hooks: list[ContainerHook] = []
    joined = {name for spec, _ in known.values() for name in (spec.get("annotations") or {}).get(JOINED, "").split(",")}
    for edits in _edits(wanted, known):
        for variable in edits.get("env") or ():
            name, _, value = str(variable).partition("=")
            envs[name] = _united(envs[name], value) if name in joined and name in envs else value
        for mount in edits.get("mounts") or ():
            read_only = "ro" in (mount.get("options") or ())
            mounts.append(Mount(str(mount["containerPath"]), str(mount["hostPath"]), read_only))
        for node in edits.get("deviceNodes") or ():
            host = str(node.get("hostPath") or node["path"])
            nodes.append(DeviceNode(str(node["path"]), host, str(node.get("permissions") or "rw")))
        for hook in edits.get("hooks") or ():
            args = tuple(map(str, hook.get("args") or ()))
            hooks.append(ContainerHook(str(hook.get("hookName", "")), str(hook["path"]), args))
    return Allocation(envs, tuple(mounts), tuple(nodes), hooks=tuple(hooks))


def _united(before: str, value: str) -> str:
    return ",".join(dict.fromkeys((*before.split(","), *value.split(","))))


def _edits(
    wanted: Sequence[str], known: Mapping[str, tuple[CdiSpec, Mapping[str, Any]]]
) -> Iterator[Mapping[str, Any]]:
    seen: list[CdiSpec] = []
    for each in wanted:
        spec, device = known[each]
        if not any(spec is other for other in seen):
            seen.append(spec)
            yield spec.get("containerEdits") or {}
        yield device.get("containerEdits") or {}
