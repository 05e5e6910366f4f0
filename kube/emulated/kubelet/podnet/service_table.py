"""The Services of a cluster as their file says (``mews.kube.emulated.controllers.service_names``), read anew when it
has changed: a line is address, port, protocol, and address and port of an endpoint where there is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mews.kube.emulated.kubelet.podnet.addresses import Services

API = "api"
"""In the place of an endpoint: wherever the API is."""


class ServiceTable:
    """Of the file at ``path``, which need not be there; ``api`` says where the API is, once pods run, and ``more`` what
    else is found at addresses that this machine does not have."""

    def __init__(self, path: Path, api: Callable[[], tuple[str, int]], more: Callable[[], Services] = dict) -> None:
        self._path = path
        self._api = api
        self._more = more
        self._stamp = (0, 0)
        self._services: Services = {}

    def services(self) -> Services:
        """Return what it says now. Blocking, for as long as a small file takes."""
        try:
            found = self._path.stat()
            if (found.st_ino, found.st_mtime_ns) != self._stamp:
                self._services = {**self._more(), **read_services(self._path.read_text("utf-8"), self._api())}
                self._stamp = (found.st_ino, found.st_mtime_ns)
        except OSError:
            return self._more()
        return self._services


def read_services(text: str, api: tuple[str, int]) -> Services:
    """Return the lines of a file. Pure."""
    found: dict[tuple[str, int, str], list[tuple[str, int]]] = {}
    for line in text.splitlines():
        address, port, protocol, *endpoint = line.split()
        endpoints = found.setdefault((address, int(port), protocol), [])
        if endpoint == [API]:
            endpoints.append(api)
        elif endpoint:
            endpoints.append((endpoint[0], int(endpoint[1])))
    return found
