"""The pool driver, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from mews.kube.component import Runnable
from mews.kube.system.facility import Facility
from mews.kube.system.foreign import KubernetesNeeds
from mews.kube.system.invariant import Invariant, RunState
from mews.kube.system.ports import Ports
from mews.kube.system.system import EDIT_TABLES, SERVE_GPU_CLAIMS, Component, System, Watched, in_module
from mews.kube.system.system_parts import SystemJudging, SystemStudies
from mews.systems.pooldra.config import PoolChassis, PoolDraConfig
from mews.systems.pooldra.names import HandOver
from mews.systems.pooldra.options import PoolDraOptions

_RETURNED_S = 60.0
"""Within which, beside ``keep_s``, a device that no claim has is in the pool again."""


def configure(options: PoolDraOptions, facility: Facility) -> PoolDraConfig:
    """Return the configuration with these options: each node has a driver, each chassis a pool for the nodes cabled to
    it.

    Raises ValueError where another system hands out the GPUs of a node: it would have to let go of what is moved.
    """
    given = options.given()
    lent = {node.lent_to: node.name for node in facility.nodes if node.lent_to}
    for system, node in lent.items():
        text = f"{system} has the GPUs of {node}, and does not release them to a claim"
        raise ValueError(f"{text}: remove one of the two")
    hand_over = HandOver(given.pop("hand_over", HandOver.IN_PLACE))
    chassis = tuple(
        PoolChassis(
            each.name,
            each.index,
            {node.name: node.ports[each.name] for node in facility.nodes if each.name in node.ports},
            each.endpoint,
            each.dialect,
            each.ca_file,
        )
        for each in facility.chassis
    )
    return PoolDraConfig(
        hand_over=hand_over,
        nodes=tuple(node.name for node in facility.nodes),
        chassis=tuple(each for each in chassis if each.ports),
        nvml=facility.nvml,
        host_root=facility.host_files,
        envs=facility.extras.envs,
        mounts=facility.extras.mounts,
        nvidia_smi=facility.nvidia_smi or "nvidia-smi",
        **given,
    )


def _pool_driver(ports: Ports, config: PoolDraConfig) -> Runnable:
    from mews.systems.pooldra.pool_driver import PoolDriver

    return PoolDriver(ports.context, config, ports.chassis(config.chassis_timeout_s))


def _node_driver(ports: Ports, config: PoolDraConfig) -> Runnable:
    from mews.kube.pulse import Pulse
    from mews.kube.system.host_steps import HostSteps
    from mews.systems.pooldra.errors import PoolDraError
    from mews.systems.pooldra.node import PoolNode
    from mews.systems.pooldra.node_driver import PoolGpuDriver

    node = ports.node
    assert node is not None, "each node has a driver of its own"
    if node.nvml is None or node.dra is None:
        raise PoolDraError(f"node {node.name}: no driver can serve there: NVML or the kubelet's sockets are missing")
    pulse = Pulse()
    driver = PoolGpuDriver(node.nvml, node.extras, node.name, config.hand_over, looked=pulse.beat)
    steps = None if node.files is None else HostSteps(node.files, node.driver, config)
    return PoolNode(ports.context, config, node.name, driver, link=node.dra, steps=steps, pulse=pulse)


def _nodes(config: PoolDraConfig) -> Sequence[str]:
    return config.nodes


def _document(config: PoolDraConfig) -> Mapping[str, Any]:
    document: Mapping[str, Any] = to_builtins(config)
    return document


def _watched() -> Sequence[Watched]:
    from mews.kube.api.resources import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
    from mews.kube.dra.claim_lines import claim_news
    from mews.systems.pooldra.journal import node_news, slice_news

    return (
        Watched(RESOURCE_CLAIMS, claim_news),
        Watched(NODES, node_news),
        Watched(RESOURCE_SLICES, slice_news),
    )


def _laws(config: PoolDraConfig) -> Sequence[Invariant[RunState]]:
    from mews.systems.pooldra.laws import laws

    return laws(config)


SYSTEM: System[PoolDraOptions, PoolDraConfig] = System(
    name="pooldra",
    sole=frozenset({EDIT_TABLES, SERVE_GPU_CLAIMS}),
    summary="attaches GPUs of a chassis to the hosts of pods whose claims were given them: a DRA driver with binding "
    "conditions",
    options=PoolDraOptions,
    configure=configure,
    components=(
        Component("pool-driver", _pool_driver),
        Component("pool-node-driver", _node_driver, nodes=_nodes),
    ),
    title="Pool driver for DRA",
    document=_document,
    watched=_watched,
    needs=KubernetesNeeds(gates=("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")),
    judging=SystemJudging(
        laws=_laws,
        bounds={"returned_s": _RETURNED_S},
    ),
    studies=SystemStudies(
        experiments=in_module("mews.systems.pooldra.experiment.all", "EXPERIMENTS"),
    ),
)
"""What the harness knows of it."""
