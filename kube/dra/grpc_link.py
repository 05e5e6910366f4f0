"""DraLink over gRPC: a node as a driver's process sees it. Wall clock only.

Source: k8s.io/dynamic-resource-allocation/kubeletplugin of Kubernetes 1.34: ``dra.sock`` in the driver's folder of
``plugins``, and ``DRIVER-reg.sock`` in ``plugins_registry``. A kubelet that is started anew looks through that folder,
so nothing has to be done then.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.kube.clock import wall_now
from mews.kube.deviceplugin.grpc_server import SocketServer, serve_on, streaming, unary
from mews.kube.deviceplugin.pb import dra_health_v1_pb2 as health_pb
from mews.kube.deviceplugin.pb import dra_v1_pb2 as pb
from mews.kube.dra.messages import (
    HEALTH_SERVICES,
    PLUGIN_TYPE,
    SERVICES,
    claim_value,
    health_message,
    prepared_message,
    unprepared_message,
)
from mews.kube.dra.port import CdiSpec, HealthReporter, ServedPlugin
from mews.own_files import write_own

log = logging.getLogger(__name__)


def calls_socket(plugins: Path, driver: str) -> Path:
    """Return where a driver serves the kubelet's calls."""
    return plugins / driver / "dra.sock"


def registration_socket(registry: Path, driver: str) -> Path:
    """Return where it tells the kubelet of that."""
    return registry / f"{driver}-reg.sock"


class CdiFiles:
    """A CdiFolder: JSON files that container runtimes read, whole at any time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def files(self) -> Mapping[str, CdiSpec]:
        """Return those that can be read; files of others may be anything."""
        found: dict[str, CdiSpec] = {}
        for path in sorted(self._folder.glob("*.json")):
            try:
                spec = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if isinstance(spec, dict):
                found[path.name] = spec
        return found

    def write(self, name: str, spec: CdiSpec) -> None:
        """Put a file there; until it is whole it has a name that no runtime reads. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = self._folder / f".{name}.new"
        write_own(fresh, json.dumps(spec))
        fresh.replace(self._folder / name)

    def remove(self, name: str) -> None:
        """Take it away."""
        (self._folder / name).unlink(missing_ok=True)


class SocketsEndpoint:
    """A DraEndpoint: a driver's two sockets. ``registered`` is set once a kubelet says so."""

    def __init__(self, registered: asyncio.Event, *servers: SocketServer) -> None:
        self._registered = registered
        self._servers = servers

    async def registered(self) -> None:
        """Return once a kubelet has said so."""
        await self._registered.wait()

    async def close(self) -> None:
        """Stop serving: the registration goes first, as a kubelet then calls no more."""
        for server in self._servers:
            await server.close()


class GrpcDraLink:
    """``plugins``, ``registry`` and ``cdi`` are /var/lib/kubelet/plugins, /var/lib/kubelet/plugins_registry and
    /var/run/cdi on a real node. The kubelet finds the driver's folder by the same path."""

    def __init__(self, *, plugins: Path, registry: Path, cdi: Path) -> None:
        self._plugins = plugins
        self._registry = registry
        self._cdi = CdiFiles(cdi)

    @property
    def cdi(self) -> CdiFiles:
        """Where specifications lie."""
        return self._cdi

    async def serve(self, driver: str, plugin: ServedPlugin) -> SocketsEndpoint:
        """Serve on both sockets, in place of leftovers; the health of devices, too, where the plugin reports it.

        Raises SocketPathTooLongError, OSError.
        """
        endpoint = calls_socket(self._plugins.absolute(), driver)
        for folder in (endpoint.parent, self._registry):
            folder.mkdir(parents=True, exist_ok=True)
        calls, registered, closing = _calls(plugin), asyncio.Event(), asyncio.Event()
        services = [(service, calls) for service in SERVICES.values()]
        reported = HEALTH_SERVICES if plugin.reports_health else ()
        services += [(service, _health(plugin, closing)) for service in reported]
        served = await serve_on(endpoint, *services, closing=closing)
        try:
            registration = await serve_on(
                registration_socket(self._registry, driver),
                (
                    "pluginregistration.Registration",
                    _registration(driver, endpoint, (*SERVICES, *reported), registered),
                ),
            )
        except BaseException:
            await served.close()
            raise
        return SocketsEndpoint(registered, registration, served)


def _calls(plugin: ServedPlugin) -> Mapping[str, Any]:
    async def prepare(request: Any) -> Any:
        return prepared_message(await plugin.prepare([claim_value(each) for each in request.claims]))

    async def unprepare(request: Any) -> Any:
        return unprepared_message(await plugin.unprepare([claim_value(each) for each in request.claims]))

    return {
        "NodePrepareResources": unary(prepare, pb.NodePrepareResourcesRequest),
        "NodeUnprepareResources": unary(unprepare, pb.NodeUnprepareResourcesRequest),
    }


def _health(plugin: HealthReporter, closing: asyncio.Event) -> Mapping[str, Any]:
    async def reports() -> AsyncIterator[Any]:
        async for devices in plugin.watch_health():
            yield health_message(devices, wall_now())

    return {"NodeWatchResources": streaming(reports, health_pb.NodeWatchResourcesRequest, closing)}


def _registration(driver: str, endpoint: Path, versions: Sequence[str], registered: asyncio.Event) -> Mapping[str, Any]:
    async def info(_: Any) -> Any:
        return pb.PluginInfo(type=PLUGIN_TYPE, name=driver, endpoint=str(endpoint), supported_versions=versions)

    async def status(request: Any) -> Any:
        if request.plugin_registered:
            log.info("the kubelet has registered %s", driver)
            registered.set()
        else:
            log.warning("the kubelet does not register %s: %s", driver, request.error)
        return pb.RegistrationStatusResponse()

    return {
        "GetInfo": unary(info, pb.InfoRequest),
        "NotifyRegistrationStatus": unary(status, pb.RegistrationStatus),
    }
