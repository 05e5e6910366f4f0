"""What the engine is asked for: one container with all that its pod, its node and its devices add to the image. Pure.

Source: Docker Engine API v1.41, ``POST /containers/create``; kubelet ``pkg/kubelet/kuberuntime`` for what a pod's words
mean to a runtime (CPU in periods of 100 ms, shares by request).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import Object, containers_of, init_containers_of, name_of, namespace_of, uid_of
from mews.kube.api.quantities import milli, whole
from mews.kube.deviceplugin.port import DeviceNode, Mount
from mews.kube.emulated.kubelet.engine.client import LocalImage
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.host_access import host_access, refusal
from mews.kube.emulated.kubelet.runtime import SEARCH_PATH, Launch

_PERIOD_US = 100_000
_LEAST_QUOTA_US, _LEAST_SHARES = 1000, 2
_SEARCHED = ("PATH", "LD_LIBRARY_PATH")
_NOT_THERE = ("shareProcessNamespace",)
_NOT_IN_A_CONTAINER = ("volumeDevices",)
_NO_SECURITY = ("sysctls", "seLinuxOptions", "windowsOptions")
_PROFILES = ("seccompProfile", "appArmorProfile")


class ContainerAdditions(Struct, frozen=True):
    """What is added to an image: mounts of this machine's files, devices of this machine's own, variables."""

    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def container_spec(pod: Object, name: str) -> Mapping[str, Any]:
    """Return the container of that name in the pod's spec."""
    found = (*init_containers_of(pod), *containers_of(pod))
    return next(container for container in found if container["name"] == name)


def check_supported(pod: Object, container: Mapping[str, Any], *, host_allowed: bool = False) -> None:
    """Raise StartError for what a pod asks for and would not get, access to this machine first."""
    asked = None if host_allowed else next(host_access(pod, container), None)
    if asked is not None:
        raise StartError("CreateContainerConfigError", refusal(asked))
    _check_security(pod, container)
    for holder, words in ((pod["spec"], _NOT_THERE), (container, _NOT_IN_A_CONTAINER)):
        for word in words:
            if holder.get(word):
                raise StartError("CreateContainerConfigError", f"{word}: containers of emulated nodes have none")


def _check_security(pod: Object, container: Mapping[str, Any]) -> None:
    for context in (pod["spec"].get("securityContext") or {}, container.get("securityContext") or {}):
        asked = [word for word in _NO_SECURITY if context.get(word)]
        asked += [f"{word}: Localhost" for word in _PROFILES if (context.get(word) or {}).get("type") == "Localhost"]
        if asked:
            text = f"securityContext: {asked[0]}: containers of emulated nodes have none"
            raise StartError("CreateContainerConfigError", text)


def creation_of(
    launch: Launch, image: LocalImage, added: ContainerAdditions, labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return the arguments of the SDK's ``create_container``.

    Raises StartError for a container that must not run as its image's user.
    """
    pod, container = launch.pod, container_spec(launch.pod, launch.container)
    env = {**launch.env, **added.env}
    env |= {name: _searched(env[name], image.env.get(name, "")) for name in _SEARCHED if name in env}
    return {
        "image": image.id,
        "entrypoint": list(launch.command) or None,
        "command": list(launch.args) or None,
        "environment": [f"{name}={value}" for name, value in env.items()],
        "working_dir": launch.working_dir or None,
        "user": _user(pod, container, image) or None,
        "hostname": None if pod["spec"].get("hostNetwork") else name_of(pod)[:63].rstrip("-."),
        "tty": bool(container.get("tty")),
        "stdin_open": bool(container.get("stdin")),
        "labels": {**labels, **_named(pod, launch)},
        "host_config": _host_config(pod, container, added),
    }


def _named(pod: Object, launch: Launch) -> dict[str, str]:
    """Return them as kubelets label what they ask a runtime for (pkg/kubelet/types/labels.go)."""
    return {
        "io.kubernetes.pod.name": name_of(pod),
        "io.kubernetes.pod.namespace": namespace_of(pod),
        "io.kubernetes.pod.uid": uid_of(pod),
        "io.kubernetes.container.name": launch.container,
        "annotation.io.kubernetes.container.restartCount": str(launch.attempt),
    }


def _searched(given: str, images: str) -> str:
    """Folders that were added stand before the image's own, which take the place of this machine's."""
    own = images or SEARCH_PATH.partition(":")[2]
    if SEARCH_PATH in given:
        return given.replace(SEARCH_PATH, own)
    return ":".join(filter(None, (given, images))) if given != images else given


def _user(pod: Object, container: Mapping[str, Any], image: LocalImage) -> str:
    security = {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}
    user, group = security.get("runAsUser"), security.get("runAsGroup")
    runs_as = image.user.partition(":")[0] if user is None else str(user)
    if security.get("runAsNonRoot"):
        if runs_as in ("", "0", "root"):
            text = "container has runAsNonRoot and image will run as root"
            raise StartError("CreateContainerConfigError", f'{text} (pod: "{name_of(pod)}_{namespace_of(pod)}")')
        if not runs_as.isdigit():
            text = f"image has non-numeric user ({runs_as}), cannot verify user is non-root"
            raise StartError("CreateContainerConfigError", f"container has runAsNonRoot and {text}")
    if group is not None:
        return f"{runs_as or '0'}:{group}"
    return "" if user is None else runs_as


def _host_config(pod: Object, container: Mapping[str, Any], added: ContainerAdditions) -> dict[str, Any]:
    spec, security = pod["spec"], container.get("securityContext") or {}
    of_pod = spec.get("securityContext") or {}
    capabilities = security.get("capabilities") or {}
    groups = [*(of_pod.get("supplementalGroups") or ()), *([of_pod["fsGroup"]] if of_pod.get("fsGroup") else [])]
    options = ["no-new-privileges"] if security.get("allowPrivilegeEscalation") is False else []
    unconfined = {"seccompProfile": "seccomp=unconfined", "appArmorProfile": "apparmor=unconfined"}
    for profile, option in unconfined.items():
        if (security.get(profile) or of_pod.get(profile) or {}).get("type") == "Unconfined":
            options.append(option)
    return {
        "NetworkMode": "host",
        "PidMode": "host" if spec.get("hostPID") else "",
        "IpcMode": "host" if spec.get("hostIPC") else "private",
        "Mounts": [_bind(mount) for mount in _by_place(added.mounts)],
        "Devices": [_device(each) for each in added.devices],
        "Privileged": bool(security.get("privileged")),
        "ReadonlyRootfs": bool(security.get("readOnlyRootFilesystem")),
        "CapAdd": list(capabilities.get("add") or ()),
        "CapDrop": list(capabilities.get("drop") or ()),
        "GroupAdd": [str(group) for group in groups],
        "SecurityOpt": options,
        "RestartPolicy": {"Name": "no"},
        **_limits(container.get("resources") or {}),
    }


def _by_place(mounts: Iterable[Mount]) -> Sequence[Mount]:
    """Return those of equal places the last counts; outer ones come first."""
    last = {mount.container_path.rstrip("/"): mount for mount in mounts}
    return [last[path] for path in sorted(last)]


def _bind(mount: Mount) -> dict[str, Any]:
    return {"Type": "bind", "Source": mount.host_path, "Target": mount.container_path, "ReadOnly": mount.read_only}


def _device(node: DeviceNode) -> dict[str, str]:
    place = {"PathOnHost": node.host_path, "PathInContainer": node.container_path}
    return {**place, "CgroupPermissions": node.permissions}


def _limits(resources: Mapping[str, Any]) -> dict[str, int]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    cpu, memory = milli(limits.get("cpu", 0)), whole(limits.get("memory", 0))
    shares = milli(requests.get("cpu", cpu / 1000 if cpu else 0)) * 1024 // 1000
    found = {"CpuShares": max(_LEAST_SHARES, min(shares, 262_144))}
    if cpu:
        found |= {"CpuPeriod": _PERIOD_US, "CpuQuota": max(_LEAST_QUOTA_US, cpu * _PERIOD_US // 1000)}
    if memory:
        found |= {"Memory": memory, "MemorySwap": memory}
    return found
