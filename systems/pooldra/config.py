"""What pool driver and node drivers are told."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from mews.kube.deviceplugin.port import Mount
from mews.systems.pooldra.names import HandOver, pool_name


class PoolChassis(Struct, frozen=True):
    """A chassis: its index, and the host port that each node is cabled to. ``endpoint``, ``dialect`` and ``ca_file``
    say how a separate process reaches it."""

    name: str
    index: int
    ports: Mapping[str, str]
    endpoint: str = ""
    dialect: str = ""
    ca_file: str = ""

    @property
    def pool(self) -> str:
        """Its pool of devices."""
        return pool_name(self.index)


class PoolDraConfig(Struct, frozen=True):
    """Times in seconds.

    ``keep_s``: how long a device stays on a host where no claim uses it. ``appear_s``: within which a host shows a
    device that was attached. ``tries`` of an attach, and ``retry_s`` for which a device that failed is not offered.
    ``node_lost_s``: a node that has not been ready for so long is not asked for its devices any more.
    ``read_back_s``: within which the table shows what an operation did, ``chassis_timeout_s`` if it was not answered;
    ``vanish_reads`` listings in a row without a device are believed. ``attributes`` are added to each device of the
    pool, for a chassis' listing knows no models.
    """

    hand_over: HandOver = HandOver.IN_PLACE
    nodes: tuple[str, ...] = ()
    chassis: tuple[PoolChassis, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    keep_s: float = 10.0
    appear_s: float = 45.0
    tries: int = 3
    retry_s: float = 60.0
    node_lost_s: float = 60.0
    poll_s: float = 1.0
    pool_poll_s: float = 5.0
    chassis_timeout_s: float = 60.0
    read_back_s: float = 20.0
    read_back_poll_s: float = 1.0
    vanish_reads: int = 3
    coming_s: float = 15.0
    """A device on the port that the host does not show may still be coming up for so long."""
    holder_patience_s: float = 2.0
    removal_timeout_s: float = 10.0
    nvml: str = ""
    nvidia_smi: str = "nvidia-smi"
    host_root: str = ""
    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()

    def chassis_of(self, node: str) -> tuple[PoolChassis, ...]:
        """Return those that the node is cabled to."""
        return tuple(each for each in self.chassis if node in each.ports)
