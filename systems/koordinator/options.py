"""Options of Koordinator in a scenario: ``stack.koordinator``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from mews.kube.runtimehook.port import HookPolicy
from mews.kube.system.options import SECONDS, TEXT, OptionsModel
from mews.systems.koordinator.names import NVIDIA
from mews.systems.koordinator.policy import Choice


class KoordinatorOptions(OptionsModel):
    """How devices are chosen, how long gangs wait, and what koordlet reports and adopts."""

    model_config = ConfigDict(alias_generator=to_camel)

    device_choice: Choice = Field(
        default="auto",
        description="minor: as in the design; leastAllocated, mostAllocated: as Koordinator v1.6.0; bandwidth: the "
        "fastest pairs; auto: bandwidth for several devices with known links, otherwise leastAllocated",
    )
    device_weights: Mapping[str, Any] = Field(
        default={},
        description="of resources, from 1 to 100, where devices and nodes are scored by how full they are; by default "
        "1 of gpu-memory-ratio, rdma and fpga",
    )
    gang_wait_s: SECONDS = Field(default=60.0, description="how long pods of a gang wait for each other to be placed")
    leader_elect: bool = Field(
        default=False,
        strict=True,
        description="the scheduler holds a Lease while it schedules, as one of several",
    )
    nodes: tuple[str, ...] | None = Field(
        default=None, description="those with a koordlet, which reports their devices; by default all"
    )
    report_s: SECONDS = Field(default=10.0, description="koordlet's period")
    poll_s: SECONDS = Field(default=1.0, description="within which a device that comes or goes is seen")
    names: Literal["today", "seed"] = Field(
        default="today", description="of the resources on nodes; seed: the design's names in addition to today's"
    )
    kinds: tuple[Mapping[str, str], ...] = Field(
        default=(),
        description="more kinds of devices: type, and pci_class, vendor, driver or device_class as in sysfs; "
        "resource if it is not koordinator.sh/TYPE",
    )
    adopt: tuple[str, ...] = Field(
        default=(NVIDIA,),
        description="resources whose devices are adopted from the kubelet's checkpoint; * at the end: what begins so",
    )
    adopt_env: bool = Field(
        default=True, strict=True, description="adopt what containers without an annotation name in their environment"
    )
    device_plugin: bool = Field(
        default=False, strict=True, description="also run a device plugin of nvidia.com/gpu, as a cluster may have"
    )
    webhook: bool = Field(
        default=False,
        strict=True,
        description="admission: assign pods with devices to our scheduler, rewrite their requests, and refuse "
        "foreign bindings; requires TLS where components use sockets",
    )
    scheduler_account: TEXT = Field(
        default="", description="the user as which pods with devices may be bound; by default the scheduler's own"
    )
    hook_failure_policy: HookPolicy = Field(
        default=HookPolicy.IGNORE,
        description="Ignore: a container whose runtime hook fails is created as it was asked for; Fail: it waits",
    )
