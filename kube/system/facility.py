"""What a system is installed on, as an administrator would write it down. Frozen values; no emulator is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from mews.dialects import DEFAULT
from mews.kube.deviceplugin.port import Mount


class ContainerExtras(Struct, frozen=True):
    """What Allocate adds for every container with a device: where the driver's library and programs are."""

    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()


class ChassisAddress(Struct, frozen=True):
    """One chassis: ``index`` prefixes its devices' IDs (unless not ``prefixed``), ``endpoint`` is its base URL ("" in
    process), and ``ca_file`` the certificates to trust for it under TLS, where the machine's do not do. ``models``: of
    the GPUs in it, each once. ``tenant``: whose it is, as fabric managers name tenants."""

    name: str
    index: int
    pool: str
    endpoint: str = ""
    dialect: str = DEFAULT
    ca_file: str = ""
    prefixed: bool = True
    models: tuple[str, ...] = ()
    tenant: str = ""


class NodeCabling(Struct, frozen=True):
    """One node: its pool, and per chassis (by name) the host port that it is cabled to; {} for none. ``lent_to``: the
    system that hands out its devices in parts, if one of the stack does (``System.lends``). ``remedied``:
    one of the stack tells its device plugins which GPUs are broken (``System.remedies``). ``host``: what options call
    it where that is not the node's own name. ``machine``: the UUID by which fabric managers know it."""

    name: str
    ports: Mapping[str, str]
    pool: str = ""
    lent_to: str = ""
    remedied: bool = False
    host: str = ""
    machine: str = ""


class Facility(Struct, frozen=True):
    """Chassis, nodes (in order of their hosts' names) and cables.

    ``namespace`` is where the system's own objects belong; None: where it says itself. ``speed``: emulated seconds per
    second of the API's time, for limits that are weighed against emulated time. ``extras``: what the containers with a
    device need on every node alike; where nodes differ, ``NodeAccess.extras`` says it.

    ``host_files``: where a component on a node finds the host's files in its container
    (``ComponentDeployment.host_files``), ``nvidia_smi`` the program, and ``nvml`` the library; "" where there are none,
    or ``NodeAccess`` has them. ``foreign``: the system's components (by name) whose place somebody else's take.
    """

    chassis: tuple[ChassisAddress, ...] = ()
    nodes: tuple[NodeCabling, ...] = ()
    namespace: str | None = None
    speed: float = 1.0
    extras: ContainerExtras = ContainerExtras()
    host_files: str = ""
    nvidia_smi: str = ""
    nvml: str = ""
    foreign: frozenset[str] = frozenset()

    def chosen_nodes(self, chosen: Sequence[str] | None) -> tuple[str, ...]:
        """Return the nodes' names: all of them, or those that a system's option ``nodes`` names by their hosts.

        Raises ValueError for a host that none has.
        """
        known = {node.host or node.name: node.name for node in self.nodes}
        for name in chosen or ():
            if known and name not in known:
                raise ValueError(f"nodes: {name!r}: must be one of {', '.join(known)}")
        return tuple(known.values()) if chosen is None else tuple(known.get(name, name) for name in chosen)
