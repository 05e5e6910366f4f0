"""Makes the root of a container that runs as a process: volumes, account, names, a /tmp of its own, its program.

A container's root is this machine's, read-only, since a process' image has no files. Of /tmp it sees its own, and of
this machine's what its image and its variables name.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mews
from mews.kube.api.objects import Object, all_containers_of, name_of, namespace_of, uid_of
from mews.kube.deviceplugin.port import Mount
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.hosts_files import HostsFiles, fqdn_of
from mews.kube.emulated.kubelet.images import SHELLS
from mews.kube.emulated.kubelet.mount_namespace import ContainerRoot, filters_lacking
from mews.kube.emulated.kubelet.pod_namespaces import PodNamespaces
from mews.kube.emulated.kubelet.podnet.network import PodNetwork
from mews.kube.emulated.kubelet.resolver_files import resolver_file
from mews.kube.emulated.kubelet.runtime import SEARCH_PATH, Launch
from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes

_WITH_NAMES = "ClusterFirstWithHostNet"
_TMP, _SHARED_MEMORY = "/tmp", "/dev/shm"
_NAMED_IN_TMP = re.compile(r"/tmp/[^/\s:;,'\"=()]+")
_NON_ROOT = 65532
"""The user ``nonroot`` of distroless images, for a container that must not run as root and names no user."""
_PROGRAMS = "/usr/local/bin"
"""Where a program stands that the container's command names without a folder."""
_LONGEST_HOSTNAME, _LONGEST_FQDN = 63, 64


class PodRoots:
    """Makes them for the containers of a cluster's processes, below ``folder``. ``names`` is the cluster's file of
    service names. Folders that are ``shared`` are found, and written, where they are; with ``host_allowed`` all of this
    machine is. ``network`` is the pods' own; without it they have this machine's."""

    def __init__(
        self,
        folder: Path,
        volumes: PodVolumes,
        *,
        names: Path | None = None,
        shared: Sequence[Path] = (),
        host_allowed: bool = False,
        network: PodNetwork | None = None,
    ) -> None:
        self.namespaces = PodNamespaces()
        self._network = network
        self._folder = folder
        self._volumes = volumes
        self._hosts = HostsFiles(folder, names)
        self._shared = tuple(shared)
        self._host_allowed = host_allowed

    async def root(
        self, launch: Launch, *, work: Path, env: Mapping[str, str], further: Iterable[Mount]
    ) -> ContainerRoot:
        """Return the root of a container whose working folder is ``work`` where its spec names none; ``further`` mounts
        come before its volumes.

        Raises StartError.
        """
        pod, own = launch.pod, self._folder / uid_of(launch.pod) / launch.container
        volumes = await self._volumes.mounts(pod, launch.container, launch.env)
        spec = next(each for each in all_containers_of(pod) if each["name"] == launch.container)
        last_words = str(spec.get("terminationMessagePath") or "")
        is_fixed = bool((spec.get("securityContext") or {}).get("readOnlyRootFilesystem"))
        temporary = Mount(_TMP, str(_emptied(own / "tmp")), read_only=is_fixed)
        nodes = (Mount(node.container_path, node.host_path) for node in launch.edits.devices)
        shared = _SHARED_MEMORY if pod["spec"].get("hostIPC") else str(self._volumes.shared_memory(pod))
        mounts = [*self._machine(launch, env, work), Mount(_SHARED_MEMORY, shared), *nodes, temporary, *further]
        mounts += [Mount(path, source, read_only=True) for path, source in launch.image.files.items()]
        if not pod["spec"].get("hostNetwork") or pod["spec"].get("dnsPolicy") == _WITH_NAMES:
            mounts.append(Mount("/etc/hosts", str(self._hosts.file(pod, launch.ip))))
        resolver = resolver_file(pod, own.parent)
        if resolver is not None:
            mounts.append(Mount("/etc/resolv.conf", str(resolver)))
        if last_words:
            mounts.append(Mount(last_words, str(_touched(self.last_words(launch)))))
        taken = [*launch.image.files, *(mount.container_path for mount in volumes)]
        if launch.working_dir and not _is_there(launch.working_dir, taken):
            mounts.append(Mount(launch.working_dir, str(work)))
        mounts += _program(launch, own, env, taken)
        user, group = _identity(pod, launch.container)
        share = await self.namespaces.share(launch)
        return ContainerRoot(
            mounts=tuple(_last_of_each([*mounts, *volumes])),
            stage=_made(own / "root"),
            folder=launch.working_dir or str(work),
            user=user,
            group=group,
            hostname=str(pod["spec"]["nodeName"]) if pod["spec"].get("hostNetwork") else hostname_of(pod),
            door=await self._door(launch),
            ip=launch.ip,
            machine_writable=self._host_allowed,
            namespaces=share.words,
            joined=share.joined,
        )

    def last_words(self, launch: Launch) -> Path:
        """Return the file that a container finds at its ``terminationMessagePath``."""
        return self._folder / uid_of(launch.pod) / launch.container / f"{launch.attempt}.message"

    async def _door(self, launch: Launch) -> int | None:
        """Return the way to the pod's network; None where it has this machine's. One in its node's network has its own,
        too, since this machine's is no node's: its ports are found at the node's address."""
        if self._network is None or not self._network.subnet.place(launch.ip).startswith("127."):
            return None
        lacking: str = await asyncio.to_thread(filters_lacking)
        return None if lacking else self._network.descriptor

    def _machine(self, launch: Launch, env: Mapping[str, str], work: Path) -> Iterator[Mount]:
        """Yield what of this machine is seen beside its read-only root."""
        known = [*(launch.image.process or ()), *launch.command, *launch.args, *env.values()]
        known += [sys.prefix, sys.base_prefix, *sys.path, str(Path(mews.__file__).parent)]
        named = {path for word in known for path in _NAMED_IN_TMP.findall(word) if os.path.exists(path)}
        shared = [str(path) for path in (*self._shared, work)]
        for path in sorted(named):
            if path not in shared:
                yield Mount(path, path, read_only=not self._host_allowed)
        for path in shared:
            yield Mount(path, path)

    def place(self, ip: str) -> str:
        """Return where on this machine a pod's address is."""
        return ip if self._network is None else self._network.subnet.place(ip)

    def keep(self, uids: Iterable[str]) -> None:
        """The pods that still run: their names are kept current."""
        self._hosts.keep(uids)

    async def close(self) -> None:
        """Follow nothing any more."""
        await self.namespaces.close()
        await self._hosts.close()
        await self._volumes.close()
        if self._network is not None:
            await self._network.close()


def hostname_of(pod: Object) -> str:
    """Return what a pod's containers are called (pkg/kubelet/util, GetNodenameForKernel and
    TruncatePodHostnameIfNeeded).

    Raises StartError.
    """
    if pod["spec"].get("setHostnameAsFQDN") and pod["spec"].get("subdomain"):
        whole = fqdn_of(pod)
        if len(whole) > _LONGEST_FQDN:
            text = (
                "failed to construct FQDN from pod hostname and cluster domain, "
                f"FQDN {whole} is too long ({_LONGEST_FQDN} characters is the max, {len(whole)} characters requested)"
            )
            raise StartError("CreateContainerConfigError", text)
        return whole
    return str(pod["spec"].get("hostname") or name_of(pod)[:_LONGEST_HOSTNAME].rstrip("-."))


def _identity(pod: Object, name: str) -> tuple[int, int]:
    """Return what this process' user and group are called in a container; files of volumes are the container's own.

    Raises StartError.
    """
    container: Mapping[str, Any] = next(each for each in all_containers_of(pod) if each["name"] == name)
    of_pod = pod["spec"].get("securityContext") or {}
    security = {**of_pod, **(container.get("securityContext") or {})}
    user = security.get("runAsUser")
    if user is None:
        user = _NON_ROOT if security.get("runAsNonRoot") else os.getuid()
    elif user == 0 and security.get("runAsNonRoot"):
        whole_name = f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
        text = f'container\'s runAsUser breaks non-root policy (pod: "{whole_name}", container: {name})'
        raise StartError("CreateContainerConfigError", text)
    group = of_pod.get("fsGroup", security.get("runAsGroup"))
    return int(user), os.getgid() if group is None else int(group)


def _program(launch: Launch, own: Path, env: Mapping[str, str], taken: Sequence[str]) -> Iterator[Mount]:
    """Yield the image's program, where the container's command names one that this machine does not have: of the
    programs beside it the one of that name, where there is one.

    Raises StartError.
    """
    process = launch.image.process
    if not launch.command or not process or process in SHELLS:
        return
    wanted = launch.command[0]
    if not wanted.startswith("/"):
        if "/" in wanted or shutil.which(wanted, path=env.get("PATH", SEARCH_PATH)):
            return
        wanted = f"{_PROGRAMS}/{wanted}"
    if _is_there(wanted, taken):
        return
    found = shutil.which(process[0], path=env.get("PATH", SEARCH_PATH))
    if found is None:
        text = f"exec: {launch.command[0]!r}: its image's program is not on this machine: {process[0]}"
        raise StartError("RunContainerError", text)
    beside = Path(found).with_name(Path(wanted).name)
    if beside.is_file() and os.access(beside, os.X_OK):
        yield Mount(wanted, str(beside), read_only=True)
    elif len(process) == 1:
        yield Mount(wanted, found, read_only=True)
    else:
        script = _made(own) / "program"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(process)} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        yield Mount(wanted, str(script), read_only=True)


def _is_there(path: str, taken: Sequence[str]) -> bool:
    """Return whether this machine or a volume has it."""
    return os.path.exists(path) or any(Path(path).is_relative_to(mount) for mount in taken)


def _last_of_each(mounts: Iterable[Mount]) -> Iterable[Mount]:
    """A volume takes the place of what else stands at its path."""
    return {mount.container_path.rstrip("/"): mount for mount in mounts}.values()


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o1777)
    return folder


def _touched(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"")
    file.chmod(0o666)
    return file


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
