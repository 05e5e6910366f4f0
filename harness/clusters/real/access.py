"""Ways into a real cluster: its API, and through its API server's proxy the back doors of what runs in it.

The proxy needs no address that this machine can reach besides the API's, on any cluster. It keeps the header
Authorization for itself, so the back doors take their token in ``X-Mews-Token``."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from mews.harness.clusters.real.agent import TOKEN_HEADER
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.manifests.parts import AGENT_PORT
from mews.kube.client.http import HttpKube
from mews.kube.client.kubeconfig.access import contexts, read_kubeconfig
from mews.kube.client.kubeconfig.endpoint import KubeconfigAccess
from mews.kube.client.kubeconfig.errors import CredentialPluginError, KubeconfigError
from mews.kube.client.sockets import Sockets
from mews.kube.deviceplugin.port import ContainerDevices, PluginError, PodDevices


class Gate:
    """A cluster as its kubeconfig lets one in. Raises BadInputError for a kubeconfig that cannot be used,
    RequirementError for a credential plugin that gives nothing here."""

    def __init__(self, target: DeploymentTarget) -> None:
        with _as_path(target.kubeconfig) as path:
            self._access: KubeconfigAccess = read_kubeconfig(path, target.context)
        self._kubes: list[HttpKube] = []
        self._sockets = Sockets()

    @property
    def url(self) -> str:
        """Where the API server is."""
        return self._access.base_url

    def names(self) -> tuple[str, ...]:
        """Return the API server's host name, which is the Host of what its proxy passes on; none where it goes by an
        address, as every server in a pod may."""
        name = urlsplit(self.url).hostname or ""
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return (name,)
        return ()

    def kube(self, actor: str) -> HttpKube:
        """Return a client for one actor, which no other uses."""
        access = self._access
        kube = HttpKube(
            access.base_url,
            token=access.tokens,
            ssl=access.ssl_context,
            headers=access.headers,
            user_agent=f"mews-{actor}",
        )
        self._kubes.append(kube)
        return kube

    def service(self, namespace: str, name: str, port: str) -> str:
        """Return the URL of a service's port by way of the proxy."""
        return f"{self._access.base_url}/api/v1/namespaces/{namespace}/services/{name}:{port}/proxy"

    def pod(self, namespace: str, name: str, port: int) -> str:
        """Return the URL of a pod's port by way of the proxy."""
        return f"{self._access.base_url}/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy"

    def session(self, token: str, timeout_s: float = 30.0) -> aiohttp.ClientSession:
        """Return a session that the proxy and the back doors let in."""
        access = self._access
        headers = {**access.headers, TOKEN_HEADER: token}
        bearer = access.tokens() if access.tokens is not None else None
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        connector = self._sockets.connector(access.ssl_context)
        return aiohttp.ClientSession(
            connector=connector, headers=headers, timeout=aiohttp.ClientTimeout(total=timeout_s)
        )

    async def close(self) -> None:
        """Give all clients' connections back, after the sessions were closed."""
        await asyncio.gather(*(kube.close() for kube in self._kubes))
        await self._sockets.closed()


def known_contexts(kubeconfig: Path | None) -> list[str]:
    """Return the names of the contexts of a kubeconfig, None for the usual ones. Raises BadInputError for one that
    cannot be used."""
    with _as_path(kubeconfig) as path:
        return contexts(path)


@contextlib.contextmanager
def _as_path(kubeconfig: Path | None) -> Iterator[str | None]:
    try:
        yield None if kubeconfig is None else str(kubeconfig)
    except CredentialPluginError as error:
        raise RequirementError(f"kubeconfig {error}") from error
    except KubeconfigError as error:
        raise BadInputError(f"kubeconfig {error}") from error


class AgentClient:
    """The agent of one node (``mews.harness.clusters.real.agent``), in the pod of that name."""

    def __init__(self, gate: Gate, namespace: str, pod: str, token: str) -> None:
        self.pod = pod
        self._url = gate.pod(namespace, pod, AGENT_PORT)
        self._session = gate.session(token)

    async def pod_resources(self) -> tuple[PodDevices, ...]:
        """podresources List, now.

        Raises PluginError where the kubelet, or the agent, does not answer.
        """
        try:
            async with self._session.get(f"{self._url}/v1/pod-resources") as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise PluginError("Unavailable", f"agent {self.pod}: {type(error).__name__}: {error}") from error
        if response.status != 200:
            raise PluginError("Unavailable", f"agent {self.pod}: HTTP {response.status}: {text.strip()}")
        return tuple(_pod_devices(entry) for entry in json.loads(text))

    async def seq(self) -> int:
        """Return the number of its last event so far.

        Raises aiohttp.ClientError and TimeoutError where it does not answer.
        """
        async with self._session.get(f"{self._url}/v1/seq") as response:
            response.raise_for_status()
            return int((await response.json())["seq"])

    async def events(self, since: int) -> AsyncIterator[Mapping[str, Any]]:
        """Yield every event after that number, as it happens. Ends, or raises aiohttp.ClientError, with the
        connection."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(since)}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30.0, sock_read=60.0)
        async with self._session.get(
            f"{self._url}/v1/events", headers=headers, timeout=timeout, read_bufsize=2**22
        ) as response:
            response.raise_for_status()
            async for line in response.content:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    async def close(self) -> None:
        """Give the connections back."""
        await self._session.close()


def _pod_devices(entry: Mapping[str, Any]) -> PodDevices:
    containers = tuple(
        (name, tuple(ContainerDevices(resource, tuple(ids)) for resource, ids in devices))
        for name, devices in entry["containers"]
    )
    return PodDevices(entry["name"], entry["namespace"], containers)
