"""KubeComp's configuration: what is pooled, where the chassis are, who is cabled to them, and how patient to be.

Nothing in KubeComp knows that the pooled thing is a GPU: resource, kind and variable names are values here (paper
section IV-F: any discrete, exclusive resource whose vendor lists and moves it without a restart).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from mews.dialects import DEFAULT
from mews.kube.deviceplugin.port import Mount
from mews.systems.kubecomp.faults import KubeCompFault

RESOURCE, SCHEDULER, NAMESPACE = "falcon.com/gpu", "kubecomp-scheduler", "kubecomp"
"""What the pooled resource, the scheduler and the components' namespace are called unless a configuration says so."""

REMOVALS = ("orderly", "surprise")
"""What ``KubeCompConfig.removal`` may be."""

SCORINGS = ("profile", "alone")
"""What ``KubeCompConfig.scoring`` may be."""


PERMIT_BOUND = "10+30n"
"""What ``KubeCompConfig.permit_bound`` is unless a configuration says so; one of ``published.PERMIT_BOUNDS``."""


class ChassisConfig(Struct, frozen=True):
    """One chassis: ``index`` prefixes its GPUIDs (unless not ``prefixed``), ``endpoint`` is its base URL, ``dialect``
    one of ``mews.dialects``.

    For Redfish: ``user`` logs in with the password in ``password_file``, or without one that of
    ``MEWS_REDFISH_PASSWORD``. For https ``ca_file`` holds the certificates to trust, or without one the system's.
    """

    name: str
    index: int
    pool: str = "pool-0"
    endpoint: str = ""
    dialect: str = DEFAULT
    user: str = "admin"
    password_file: str = ""
    ca_file: str = ""
    prefixed: bool = True

    def gpuid(self, device: str) -> str:
        """Return the Kubernetes device ID of a device of this chassis: ``1-001300`` (contract chassis.md section 2), or
        ``001300`` alone."""
        return f"{self.index}-{device}" if self.prefixed else device


class NodeConfig(Struct, frozen=True):
    """One node: its pool, and per chassis (by name) the host port that it is cabled to. ``lent_to``: the component that
    hands out its devices there in parts, if one does (``mews.kube.deviceplugin.release``): KubeComp then announces none
    on it, places no pods there, and asks that component for each device that it moves away. ``remedied``: the node says
    which GPUs are broken (``mews.kube.deviceplugin.remedies``), and those are announced as unhealthy."""

    name: str
    ports: Mapping[str, str]
    pool: str = "pool-0"
    lent_to: str = ""
    remedied: bool = False


class Timing(Struct, frozen=True):
    """Periods, patience and retries; seconds of the API's time unless another unit is named."""

    device_poll_s: float = 1.0
    """DisagGPU-DevMgr's rest between two readings of the chassis (contract kubecomp.md section 2)."""
    pool_poll_s: float = 10.0
    """Reconfig-Mgr's rest between two readings of a pool for its published list."""
    heartbeat_s: float = 10.0
    """How often a node's report is written when nothing changed."""
    report_stale_s: float = 30.0
    """A report without a heartbeat for this long is stale: none of the node's devices is a candidate."""
    consent_fresh_s: float = 15.0
    """Consent that is not renewed for this long no longer counts."""
    withdrawal_check_s: float = 0.2
    """DevMgr's rest between two looks at the kubelet while a withdrawal is asked for."""
    withdrawal_timeout_s: float = 20.0
    """How long Reconfig-Mgr waits for consent before it asks the device back."""
    withdrawal_lease_s: float = 180.0
    """How long a request for withdrawal stands unless it is renewed; the node then announces the device again."""
    chassis_timeout_s: float = 60.0
    """After this long a chassis operation without an answer has an unknown outcome."""
    read_back_poll_s: float = 1.0
    """The pause between two readings that look for a change."""
    read_back_bound_s: float = 20.0
    """After this long a change that the table does not show did not happen."""
    retries: int = 4
    """How often an attach or detach is tried in all."""
    retry_backoff_s: float = 2.0
    """The pause before the second try; it doubles with each."""
    requeue_first_s: float = 2.0
    requeue_last_s: float = 60.0
    """The first and the longest pause before a pod that cannot be served is looked at again."""
    vanish_reads: int = 5
    """A device that this many readings in a row lack, all lacking the same ones, is gone."""
    empty_settle_s: float = 2.0
    """An empty pod-resources list counts once it has been empty this long (it is in a kubelet's first second)."""
    holder_patience_s: float = 2.0
    """For this long DevMgr waits for processes to close a device that is taken off its host: some only look."""
    mig_poll_s: float = 5.0
    """How often DevMgr asks the driver which GPUs are in MIG mode, on hosts with GPUs that have it, while none is being
    taken out."""
    removal_timeout_s: float = 10.0
    """After this long a removal (or a rescan) that blocks is given up."""
    refusal_backoff_s: float = 10.0
    """For this long a device that its host refused to give is no candidate; it doubles, up to ``requeue_last_s``."""
    grant_grace_s: float = 30.0
    """For this long a device handed out by Allocate counts as held though pod-resources does not show it yet."""


class AllocateConfig(Struct, frozen=True):
    """What Allocate adds for every container, for example where a library finds its state."""

    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()


class KubeCompConfig(Struct, frozen=True):
    """The whole of it."""

    chassis: tuple[ChassisConfig, ...]
    nodes: tuple[NodeConfig, ...]
    resource: str = RESOURCE
    device_kind: str = "GPU"
    device_env: str = "DISAG_DEVICES"
    uuid_env: str = "NVIDIA_VISIBLE_DEVICES"
    plugin_socket: str = "falcon.sock"
    scheduler_name: str = SCHEDULER
    namespace: str = NAMESPACE
    policy: str = "both"
    scoring: str = "profile"
    """``profile``: the default Score plugins beside equation 1, as the published chart has it; ``alone``: equation 1,
    and ties by name."""
    mode: str = "corrected"
    """``public``: the published implementation with these ``faults`` (``mews.systems.kubecomp.faults``)."""
    faults: tuple[str, ...] = ()
    permit_bound: str = PERMIT_BOUND
    """How long a short Permit waits for n devices, in seconds: ``10+30n`` or ``15+5n``."""
    marks_all: bool = False
    """Whether the scheduler annotates every pod that it binds with whether it uses pooled devices, and leaves that: the
    public Reconfig-Mgr knows by it whose devices it must not take."""
    partial: bool = False
    strict_fcfs: bool = False
    removal: str = "orderly"
    """How a host gives up a device before it is detached: ``orderly`` (contract host.md section 4), where the node's
    files are there; ``surprise``: it is not told, as the published code does and the measured testbed did."""
    sysfs_root: str = ""
    """The folder with the node's sys and proc: a device is announced once they show it, and is taken off the host
    there. "": the chassis alone tells."""
    nvidia_smi: str = "nvidia-smi"
    """The program that makes NVML's calls on a node where ``sysfs_root`` is set; "" where its devices need none."""
    allocate: AllocateConfig = AllocateConfig()
    timing: Timing = Timing()
    foreign: tuple[str, ...] = ()
    """Components whose place somebody else's take; not in the components' file."""

    def has(self, fault: KubeCompFault) -> bool:
        """Return whether that fault of the published implementation is on."""
        return fault.value in self.faults

    @property
    def resource_group(self) -> str:
        """The group whose resources NodeResourcesFit ignores: ``falcon.com``."""
        return self.resource.partition("/")[0]

    def node(self, name: str) -> NodeConfig | None:
        """Return a node's cabling, or None for a node outside all pools; ``Topology`` answers faster."""
        return next((node for node in self.nodes if node.name == name), None)


class Topology:
    """Who is cabled to what, looked up in O(1)."""

    def __init__(self, config: KubeCompConfig) -> None:
        self.pools: tuple[str, ...] = tuple(sorted({chassis.pool for chassis in config.chassis}))
        self._chassis = {chassis.name: chassis for chassis in config.chassis}
        self._nodes = {node.name: node for node in config.nodes}
        self._by_port = {(name, port): node.name for node in config.nodes for name, port in node.ports.items()}
        by_index = sorted(config.chassis, key=lambda chassis: chassis.index)
        by_name = sorted(config.nodes, key=lambda node: node.name)
        self._chassis_of = {pool: tuple(c for c in by_index if c.pool == pool) for pool in self.pools}
        self._nodes_of: dict[str, list[NodeConfig]] = {pool: [] for pool in self.pools}
        for node in by_name:
            self._nodes_of.setdefault(node.pool, []).append(node)

    def chassis(self, name: str) -> ChassisConfig:
        """Return a chassis by name."""
        return self._chassis[name]

    def chassis_of(self, pool: str) -> Sequence[ChassisConfig]:
        """Return the pool's chassis, in order of index."""
        return self._chassis_of.get(pool, ())

    def node(self, name: str) -> NodeConfig | None:
        """Return a node's cabling, or None for a node outside all pools."""
        return self._nodes.get(name)

    def nodes_of(self, pool: str) -> Sequence[NodeConfig]:
        """Return the pool's nodes, in order of name."""
        return self._nodes_of.get(pool, ())

    def lent_to(self, node: str) -> str:
        """Return who hands out the node's devices in parts; "" for nobody."""
        found = self._nodes.get(node)
        return found.lent_to if found else ""

    def pool_of(self, node: str) -> str | None:
        """Return the node's pool, or None."""
        found = self._nodes.get(node)
        return found.pool if found else None

    def node_on(self, chassis: str, port: str | None) -> str:
        """Return the node cabled to that port of that chassis; "" when there is none or the port is None."""
        return self._by_port.get((chassis, port), "") if port is not None else ""
