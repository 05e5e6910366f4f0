"""Volumes that a pod mounts and its programs do not find, where this machine allows no namespaces: containers that are
processes then see this machine's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object, all_containers_of
from mews.kube.emulated.kubelet.in_cluster import FOLDER

REASON = "VolumesNotMounted"
SHARED_REASON = "NamespacesShared"


def unseen_volumes(pod: Object, is_process: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the volumes, in the order of the pod; ``is_process`` says of an image whether it runs as a process. A
    service account is there, and so is a path of the host that is mounted where it lies."""
    mounts = [
        mount
        for container in all_containers_of(pod)
        if is_process(str(container.get("image", "")))
        for mount in container.get("volumeMounts") or ()
    ]
    volumes = pod["spec"].get("volumes") or ()
    return tuple(str(each["name"]) for each in volumes if any(_unseen(each, mount) for mount in mounts))


def _unseen(volume: Mapping[str, Any], mount: Mapping[str, Any]) -> bool:
    if mount["name"] != volume["name"] or str(mount["mountPath"]).rstrip("/") == FOLDER:
        return False
    return not any(path == str(mount["mountPath"]).rstrip("/") for path in _places(volume))


def _places(volume: Mapping[str, Any]) -> Iterator[str]:
    if "hostPath" in volume:
        yield str(volume["hostPath"]["path"]).rstrip("/")


def explanation(names: tuple[str, ...], lacking: str = "") -> str:
    """Return what the event says; ``lacking``: why there are no namespaces."""
    which = f"Volume {names[0]} is" if len(names) == 1 else f"Volumes {', '.join(names)} are"
    why = f" (no namespaces: {lacking})" if lacking else ""
    return f"{which} not mounted: containers that run as processes see the file system of this machine{why}"


def shared_namespaces(pod: Object, lacking: Callable[[str], str]) -> str:
    """Return what an event says of namespaces that the pod should not share with this machine and does; "": none.
    ``lacking`` says of a kind why there can be none."""
    spec = pod["spec"]
    named = {"pid": ("hostPID", "process IDs"), "ipc": ("hostIPC", "IPC objects")}
    found = {text: lacking(kind) for kind, (field, text) in named.items() if not spec.get(field)}
    shared = [text for text, why in found.items() if why]
    if not shared:
        return ""
    why = next(why for why in found.values() if why)
    return f"Containers share the {' and '.join(shared)} of this machine: {why}"
