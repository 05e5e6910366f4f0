"""The remediation of broken GPUs, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from mews.kube.component import Runnable
from mews.kube.system.deployment import CONFIG, ON_NODE, RECORDS, ComponentDeployment, SystemDeployment, rule
from mews.kube.system.facility import Facility
from mews.kube.system.invariant import Invariant, RunState
from mews.kube.system.ports import Ports
from mews.kube.system.system import Component, System, Watched
from mews.kube.system.system_parts import SystemJudging
from mews.systems.remediation.config import RemediationConfig
from mews.systems.remediation.options import RemediationOptions

_UNCORDON_S = 30.0
"""Within which a node on which nothing is to be done any more is given back."""


def configure(options: RemediationOptions, facility: Facility) -> RemediationConfig:
    """Return the configuration with these options: every node is watched, unless they say which."""
    given = options.given()
    nodes = facility.chosen_nodes(given.pop("nodes", None))
    return RemediationConfig(
        nodes=nodes,
        lent={node.name: node.lent_to for node in facility.nodes if node.lent_to},
        nvidia_smi=facility.nvidia_smi,
        host_root=facility.host_files,
        **given,
    )


def _controller(ports: Ports, config: RemediationConfig) -> Runnable:
    from mews.systems.remediation.controller import RemediationController

    return RemediationController(ports.context, config)


def _agent(ports: Ports, config: RemediationConfig) -> Runnable:
    from mews.systems.remediation.agent import RemediationAgent
    from mews.systems.remediation.errors import RemediationConfigError

    node = ports.node
    assert node is not None, "each node has an agent of its own"
    if node.files is None:
        raise RemediationConfigError(f"node {node.name}: the host's files are not there")
    return RemediationAgent(ports.context, config, node.name, files=node.files, driver=node.driver)


def _nodes(config: RemediationConfig) -> Sequence[str]:
    return config.nodes


def _document(config: RemediationConfig) -> Mapping[str, Any]:
    document: Mapping[str, Any] = to_builtins(config)
    return document


def _watched() -> Sequence[Watched]:
    from mews.kube.api.resources import NODES, PODS
    from mews.systems.remediation.journal import node_news, pod_news

    return (Watched(NODES, node_news), Watched(PODS, pod_news))


def _laws(config: RemediationConfig) -> Sequence[Invariant[RunState]]:
    from mews.systems.remediation.laws import laws

    return laws(config)


def _argv(component: str) -> Sequence[str]:
    return ("-m", "mews.systems.remediation", component, "--config", CONFIG, "--records", RECORDS)


_WATCH = ("list", "watch")
_CONTROLLER_DEPLOYMENT = ComponentDeployment(
    _argv("controller"),
    everywhere=(
        rule("", ["nodes"], [*_WATCH, "patch"]),
        rule("", ["pods"], ["get", *_WATCH, "patch", "delete"]),  # marks; DeleteAfterTimeout
        rule("", ["pods/eviction"], ["create"]),
        rule("", ["events"], ["create", "patch"]),
    ),
)
_AGENT_DEPLOYMENT = ComponentDeployment(
    _argv("agent"),
    everywhere=(rule("", ["nodes"], [*_WATCH, "patch"]),),
    security=ON_NODE,
    host_files=True,
)

SYSTEM: System[RemediationOptions, RemediationConfig] = System(
    name="remediation",
    summary="remedies broken GPUs: cordons their nodes, evicts the pods that use them, resets them",
    options=RemediationOptions,
    configure=configure,
    components=(
        Component("remediation-controller", _controller, deployment=_CONTROLLER_DEPLOYMENT),
        Component("remediation-agent", _agent, nodes=_nodes, deployment=_AGENT_DEPLOYMENT),
    ),
    title="Remediation",
    document=_document,
    watched=_watched,
    remedies=_nodes,
    deployment=SystemDeployment(
        config_map="remediation-config", config_path="/etc/remediation/config.yaml", owner="remediation"
    ),
    judging=SystemJudging(
        laws=_laws,
        bounds={"uncordon_s": _UNCORDON_S},
    ),
)
"""What the harness knows of it."""
