"""Stands in for cluster DNS where there is none: the names of headless services' pods, in a file like /etc/hosts.

Pods of an emulated node are processes with an address of 127.0.0.0/8; they find the file by the environment variable
MEWS_HOSTS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from mews.kube.api.objects import Object, is_terminal, labels_of, name_of, namespace_of
from mews.kube.api.resources import PODS, SERVICES
from mews.kube.client.informer import Informer
from mews.kube.component import Context

HOSTS_FILE = "MEWS_HOSTS"


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
        lines = names(self._services.items(), list(self._pods.items()))
        text = "".join(f"{address} {' '.join(known)}\n" for address, known in lines)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self._file)


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


def _selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())
