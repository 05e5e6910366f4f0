"""Each pod's ``/etc/hosts``: its own name, what its spec adds, and the names of services, which come and go."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mews.kube.api.objects import Object, name_of, namespace_of, uid_of
from mews.kube.clock import rest

_CLUSTER_DOMAIN = "cluster.local"
_LOOK_S = 0.5
_HEAD = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
"""


class HostsFiles:
    """Writes them below ``root``; ``names`` is the cluster's file of service names, which need not be there."""

    def __init__(self, root: Path, names: Path | None = None) -> None:
        self._root = root
        self._names = names
        self._own: dict[Path, tuple[str, str]] = {}
        """The namespace of each pod, and its own lines."""
        self._following: asyncio.Task[None] | None = None
        self._shown = ""

    def file(self, pod: Object, ip: str) -> Path:
        """Return the pod's file; it follows the names from now on."""
        path = self._root / uid_of(pod) / "hosts"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._own[path] = namespace_of(pod), own_names(pod, ip)
        self._shown = self._read()
        self._write(path)
        if self._following is None and self._names is not None:
            self._following = asyncio.create_task(self._follow(), name="hosts-files")
        return path

    def keep(self, uids: Iterable[str]) -> None:
        """Of the pods that still run; other pods' files are left as they are."""
        kept = set(uids)
        self._own = {path: text for path, text in self._own.items() if path.parent.name in kept}

    async def _follow(self) -> None:
        while True:
            await rest(_LOOK_S)
            fresh = self._read()
            if fresh != self._shown:
                self._shown = fresh
                for path in list(self._own):
                    self._write(path)

    def _read(self) -> str:
        with contextlib.suppress(OSError):
            return "" if self._names is None else self._names.read_text("utf-8")
        return ""

    def _write(self, path: Path) -> None:
        """In place: a file in its place would be another one than that which is mounted."""
        namespace, own = self._own[path]
        with contextlib.suppress(FileNotFoundError):
            path.write_text(own + with_short_names(self._shown, namespace), encoding="utf-8")

    async def close(self) -> None:
        """Follow no more."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)


def with_short_names(lines: str, namespace: str) -> str:
    """Return the names of services with those that a pod of that namespace uses: by its first search domain, a resolver
    finds ``x.NAMESPACE.svc.cluster.local`` as ``x``."""
    found = []
    for line in lines.splitlines():
        name = line.partition(" ")[2].partition(" ")[0]
        short = name.removesuffix(f".{namespace}")
        found.append(f"{line}\n" if short == name else f"{line} {short}\n")
    return "".join(found)


def fqdn_of(pod: Object) -> str:
    """Return a pod's name in the subdomain of a headless Service (GeneratePodHostNameAndDomain)."""
    spec: Any = pod["spec"]
    return f"{spec.get('hostname') or name_of(pod)}.{spec['subdomain']}.{namespace_of(pod)}.svc.{_CLUSTER_DOMAIN}"


def own_names(pod: Object, ip: str) -> str:
    """Return what the kubelet writes (pkg/kubelet/kubelet_pods.go, managedHostsFileContent)."""
    spec: Any = pod["spec"]
    whole = f"{fqdn_of(pod)}\t" if spec.get("subdomain") else ""
    lines = [f"{ip}\t{whole}{spec.get('hostname') or name_of(pod)}\n"] if ip else []
    for alias in spec.get("hostAliases") or ():
        lines.append(f"{alias['ip']}\t" + "\t".join(alias.get("hostnames") or ()) + "\n")
    return _HEAD + "".join(lines)
