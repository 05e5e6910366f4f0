"""What the parts of Koordinator are told."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from mews.kube.deviceplugin.port import Mount
from mews.kube.runtimehook.port import HookPolicy
from mews.systems.koordinator.koordlet_config import KoordletConfig
from mews.systems.koordinator.names import NAMESPACE, SCHEDULER
from mews.systems.koordinator.policy import Choice


class KoordinatorConfig(Struct, frozen=True):
    """``device_choice``: how one of several sets of devices is chosen. ``device_weights``: of resources, from 1 to
    100, where devices and nodes are scored by how full they are; none: upstream's. ``gang_wait_s``: how long pods
    of a gang wait for each other at Permit, seconds of the API's time. ``nodes``: those with a koordlet, which is
    told ``koordlet``. ``hook_failure_policy``: what becomes of a container whose runtime hook fails, Ignore or
    Fail. ``device_plugin``: one of ``nvidia.com/gpu`` runs beside. ``scheduler_account``: the user as which alone
    the webhook lets pods with devices be bound, "": see ``scheduler_accounts``. ``leader_elect``: of several
    schedulers the one that holds the Lease ``scheduler_name`` in ``namespace`` schedules. ``nvml`` is the library
    that a component in a container loads, and ``host_files`` the folder with its host's sys and proc, "" for the
    machine's; ``envs`` and ``mounts`` are what containers with a GPU need besides."""

    scheduler_name: str = SCHEDULER
    namespace: str = NAMESPACE
    device_choice: Choice = "auto"
    device_weights: Mapping[str, int] = field(default_factory=dict)
    gang_wait_s: float = 60.0
    nodes: tuple[str, ...] = ()
    hook_failure_policy: str = HookPolicy.IGNORE.value
    koordlet: KoordletConfig = field(default_factory=KoordletConfig)
    device_plugin: bool = False
    scheduler_account: str = ""
    leader_elect: bool = False
    nvml: str = ""
    host_files: str = ""
    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()

    def scheduler_accounts(self) -> tuple[str, ...]:
        """Return the users as which the scheduler binds: that of its service account, or of its name as a component of
        the control plane has it."""
        name = self.scheduler_name
        usual = (f"system:serviceaccount:{self.namespace}:{name}", f"system:{name}")
        return (self.scheduler_account,) if self.scheduler_account else usual
