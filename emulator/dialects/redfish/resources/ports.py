"""Ports of processors, and what goes over any port: a GPU's link to the switch, and a host's to the chassis.

Both ends of a link count the same bytes, in the other direction. A host's port counts what its GPUs move now; one that
left takes its count with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.blocks import block_processor
from mews.emulator.dialects.redfish.resources.chassis import PORTS
from mews.emulator.dialects.redfish.resources.fabric import METRICS, port
from mews.emulator.dialects.redfish.resources.hosts import any_processor
from mews.emulator.dialects.redfish.resources.systems import CPU, host_of
from mews.emulator.dialects.redfish.route import Body, RedfishRoute, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.telemetry.units import ns

GPU_PORT = "PCIe"
_KEPT = ("PortProtocol", "Width", "ActiveWidth", "LinkStatus", "LinkState", "InterfaceEnabled")
_RATED = ("CurrentSpeedGbps", "MaxSpeedGbps", "Status")

Owned = Callable[[RedfishView, str, str], Body | None]
"""(view, owner, processor) -> the processor, if the owner has it."""


def _moved(view: RedfishView, name: str) -> int:
    """Return bytes in each direction over a port of the switch."""
    telemetry, at_ns = view.box.telemetry, ns(view.now_s)
    device = next((row.device for row in view.rows if uris.downstream(view.slot(row.device)) == name), None)
    if device is not None:
        return telemetry.gpu(device).pcie_bytes(at_ns)
    here = next((each for each in view.ports if uris.upstream(each) == name), None)
    return sum(telemetry.gpu(row.device).pcie_bytes(at_ns) for row in view.rows if here and row.port == here)


def _metrics(view: RedfishView, uri: str, switch_port: str) -> Body:
    """Return that of one end of the link of that port of the switch."""
    moved = _moved(view, switch_port)
    device = next((row.device for row in view.rows if uris.downstream(view.slot(row.device)) == switch_port), None)
    replays = view.box.telemetry.gpu(device).counters.pcie_replays if device is not None else None
    errors = {} if replays is None else {"PCIeErrors": {"ReplayCount": replays}}
    name = f"Metrics of port {uris.tail(uri.removesuffix(f'/{METRICS}'))}"
    return resource("PortMetrics", uri, name, RXBytes=moved, TXBytes=moved, **errors)


def switch_metrics(view: RedfishView, name: str) -> Body | None:
    """Return what goes over a port of the switch."""
    return None if port(view, name) is None else _metrics(view, f"{uris.switch_port(name)}/{METRICS}", name)


def _ends(view: RedfishView, owner: str, which: str, found: Body) -> Sequence[tuple[str, str]]:
    """Return the ports of a processor: name -> that port of the switch."""
    row = view.row(which)
    if row is not None:
        return ((GPU_PORT, uris.downstream(view.slot(row.device))),)
    if which != f"{CPU}0":
        return ()
    return tuple(
        (f"PCIe{port}", uris.upstream(port)) for port, host in view.ports.items() if host == host_of(view, owner)
    )


def _routes(home: str, owned: Owned) -> tuple[RedfishRoute, ...]:
    def all_ports(view: RedfishView, owner: str, which: str) -> Body | None:
        """Return the ports of a processor."""
        found = owned(view, owner, which)
        if found is None:
            return None
        uri = f"{found['@odata.id']}/{PORTS}"
        names = [name for name, _ in _ends(view, owner, which, found)]
        return collection("Port", uri, "Ports", [f"{uri}/{name}" for name in names])

    def one_port(view: RedfishView, owner: str, which: str, name: str) -> Body | None:
        """Return one of them: the other end of a port of the switch."""
        found = owned(view, owner, which)
        across = None if found is None else dict(_ends(view, owner, which, found)).get(name)
        other = None if across is None else port(view, across)
        if found is None or across is None or other is None:
            return None
        uri = f"{found['@odata.id']}/{PORTS}/{name}"
        return resource(
            "Port",
            uri,
            f"Port {name} of {which}",
            PortId=name,
            PortType="UpstreamPort" if view.row(which) is not None else "DownstreamPort",
            Metrics=ref(f"{uri}/{METRICS}"),
            Links=links([uris.switch_port(across)], "ConnectedSwitchPorts"),
            **{key: other[key] for key in (*_KEPT, *_RATED)},
        )

    def metrics(view: RedfishView, owner: str, which: str, name: str) -> Body | None:
        """Return what goes over it."""
        found = owned(view, owner, which)
        across = None if found is None else dict(_ends(view, owner, which, found)).get(name)
        if found is None or across is None:
            return None
        return _metrics(view, f"{found['@odata.id']}/{PORTS}/{name}/{METRICS}", across)

    at = f"{home}/{PORTS}"
    return (
        RedfishRoute(at, all_ports),
        RedfishRoute(f"{at}/{{port}}", one_port),
        RedfishRoute(f"{at}/{{port}}/{METRICS}", metrics),
    )


ROUTES = (
    RedfishRoute(f"{uris.switch_port('{port}')}/{METRICS}", switch_metrics),
    *_routes(f"{uris.SYSTEMS}/{{system}}/Processors/{{processor}}", any_processor),
    *_routes(f"{uris.BLOCKS}/{{block}}/Processors/{{processor}}", block_processor),
)
