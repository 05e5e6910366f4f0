"""Stands in for cluster DNS and kube-proxy where there are none: names of services and pods, in a file like /etc/hosts.

Pods of an emulated node are processes with an address of 127.0.0.0/8; they find the file by the environment variable
MEWS_HOSTS, with the addresses of pods. Beside it lies one for pods that reach the addresses of services, too, and the
table of services by which they do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.kube.api.objects import Object, is_terminal, labels_of, name_of, namespace_of
from mews.kube.api.resources import PODS, SERVICES
from mews.kube.client.informer import Informer
from mews.kube.component import Context

HOSTS_FILE = "MEWS_HOSTS"
POD_NAMES, TABLE = "pod-hosts", "services"
"""Names of the files beside it."""
_API = ("default", "kubernetes")


class ServiceNames:
    """Component: keeps the file current."""

    def __init__(self, context: Context, file: Path) -> None:
        self._file = file
        self._pods = Informer(context.kube, PODS, lean=True)
        self._services = Informer(context.kube, SERVICES, lean=True)
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in (self._pods, self._services):
                tasks.create_task(informer.run())
            for informer in (self._pods, self._services):
                await informer.synced()
                informer.on_change(lambda old, new: self._changed.set())
            while True:
                self._write()
                self._changed.clear()
                await self._changed.wait()

    def _write(self) -> None:
        services, pods = list(self._services.items()), list(self._pods.items())
        _replace(self._file, _hosts(names(services, pods)))
        _replace(self._file.with_name(POD_NAMES), _hosts([*service_addresses(services, pods), *pod_names(pods)]))
        rows = sorted({*service_rows(services, pods), *host_port_rows(pods)})
        _replace(self._file.with_name(TABLE), "".join(f"{' '.join(row)}\n" for row in rows))


def _hosts(lines: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    return "".join(f"{address} {' '.join(known)}\n" for address, known in lines)


def _replace(file: Path, text: str) -> None:
    """In one step, and only what changed: readers look at when that was."""
    with contextlib.suppress(OSError):
        if file.read_text("utf-8") == text:
            return
    fresh = file.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)


def names(services: Iterable[Object], pods: Iterable[Object]) -> list[tuple[str, tuple[str, ...]]]:
    """(address, names) for every service with a selector, of its pods that have an address and have not ended."""
    found: list[tuple[str, tuple[str, ...]]] = []
    there = [pod for pod in pods if (pod.get("status") or {}).get("podIP") and not is_terminal(pod)]
    for service in services:
        selector: Mapping[str, str] = (service.get("spec") or {}).get("selector") or {}
        name, namespace = name_of(service), namespace_of(service)
        for pod in there if selector else ():
            if namespace_of(pod) == namespace and _selects(selector, labels_of(pod)):
                short = f"{name}.{namespace}"
                known = (short, f"{short}.svc", f"{short}.svc.cluster.local")
                found.append((str(pod["status"]["podIP"]), known))
    return found


def service_addresses(services: Iterable[Object], pods: Sequence[Object]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(address, names) for every service: its own address, of a headless one those of its pods."""
    for service in services:
        address = str((service.get("spec") or {}).get("clusterIP") or "")
        if address in ("", "None"):
            yield from names([service], pods)
        else:
            short = f"{name_of(service)}.{namespace_of(service)}"
            yield address, (short, f"{short}.svc", f"{short}.svc.cluster.local")


def pod_names(pods: Iterable[Object]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(address, names) of pods that have a host name in a subdomain, as a headless service publishes them."""
    for pod in pods:
        spec, address = pod["spec"], (pod.get("status") or {}).get("podIP")
        if address and spec.get("hostname") and spec.get("subdomain") and not is_terminal(pod):
            short = f"{spec['hostname']}.{spec['subdomain']}.{namespace_of(pod)}"
            yield str(address), (short, f"{short}.svc", f"{short}.svc.cluster.local")


def service_rows(services: Iterable[Object], pods: Sequence[Object]) -> Iterator[tuple[str, ...]]:
    """Yield them for each port of a service with an address: address, port, protocol, and one row for each pod that
    serves it: the pod's address and port. ``api`` is in their place for the API's own service."""
    for service in services:
        spec: Mapping[str, Any] = service.get("spec") or {}
        address, selector = str(spec.get("clusterIP") or ""), spec.get("selector") or {}
        is_api = (namespace_of(service), name_of(service)) == _API
        if address in ("", "None") or not (selector or is_api):
            continue
        serving = [
            pod
            for pod in pods
            if selector
            and namespace_of(pod) == namespace_of(service)
            and _selects(selector, labels_of(pod))
            and (spec.get("publishNotReadyAddresses") or _is_ready(pod))
        ]
        for port in spec.get("ports") or ():
            row = (address, str(port["port"]), str(port.get("protocol") or "TCP"))
            yield row
            if is_api:
                yield (*row, "api")
            for pod in serving:
                target = _target(pod, port)
                if target:
                    yield (*row, str(pod["status"]["podIP"]), str(target))


def host_port_rows(pods: Iterable[Object]) -> Iterator[tuple[str, ...]]:
    """Rows for ports of nodes that lead to a pod's (``hostPort``), as the portmap plugin of CNI makes them: from the
    pod's start on, ready or not, and for all of a pod in the node's network. One for another address than the node's is
    the node's own business."""
    for pod in pods:
        status = pod.get("status") or {}
        node, address = str(status.get("hostIP") or ""), str(status.get("podIP") or "")
        if not (node and address) or is_terminal(pod):
            continue
        for container in pod["spec"]["containers"]:
            for port in container.get("ports") or ():
                if port.get("hostPort") and port.get("hostIP") in (None, "", "0.0.0.0", node):
                    row = (node, str(port["hostPort"]), str(port.get("protocol") or "TCP"))
                    yield (*row, address, str(port["containerPort"]))


def _is_ready(pod: Object) -> bool:
    status = pod.get("status") or {}
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
    return bool(status.get("podIP")) and ready and not is_terminal(pod)


def _target(pod: Object, port: Mapping[str, Any]) -> int:
    """Return the pod's port that a service's leads to; 0 where the pod has none of that name."""
    wanted = port.get("targetPort") or port["port"]
    if isinstance(wanted, int):
        return wanted
    declared = (each for container in pod["spec"]["containers"] for each in container.get("ports") or ())
    return next((int(each["containerPort"]) for each in declared if each.get("name") == wanted), 0)


def _selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())
