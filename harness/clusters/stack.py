"""The components' configuration for a scenario: what an administrator would write down."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mews.emulator.chassis.inventory import Hardware
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.model import Scenario
from mews.kube.clock import Pace
from mews.kube.scheduling.config import Profile
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.facility import Facility
from mews.systems import registry
from mews.systems.kubecomp.config import ChassisConfig, KubeCompConfig, NodeConfig, Timing

if TYPE_CHECKING:
    from mews.systems.kod2.config import OperatorConfig


def systems_of(scenario: Scenario) -> tuple[ConfiguredSystem, ...]:
    """The systems of the scenario's stack, for those who ask what they declare and not where they are installed."""
    found = []
    for name in registry.OURS:
        given = getattr(scenario.stack, name)
        if given is not None:
            system = registry.system(name)
            said = given if isinstance(given, dict) else given.model_dump(exclude_unset=True)
            options = system.options.model_validate(said)
            found.append(ConfiguredSystem(system, options, system.configure(options, Facility())))
    return tuple(found)


def kubecomp_config(
    scenario: Scenario, hardware: Hardware, *, dialect: str, endpoints: Mapping[str, str]
) -> KubeCompConfig:
    """The configuration with the scenario's options; ``endpoints``: chassis name -> base URL ("" in process).

    Raises ScenarioError for an option that KubeComp does not have.
    """
    chassis = tuple(
        ChassisConfig(spec.name, spec.index, pool=spec.pool, endpoint=endpoints.get(spec.name, ""), dialect=dialect)
        for spec in hardware.chassis
    )
    config = KubeCompConfig(chassis=chassis, nodes=_nodes(hardware))
    stack = scenario.stack.kubecomp
    if stack is None:
        return config
    options: dict[str, Any] = dict(stack.config)
    for part in (stack.reconfig_manager, stack.device_manager):
        options |= part or {}
    if stack.scheduler is not None:
        options |= stack.scheduler.model_dump()
    return _with(config, options, str(scenario.path or scenario.name))


def _nodes(hardware: Hardware) -> tuple[NodeConfig, ...]:
    ports: dict[str, dict[str, str]] = {}
    pools: dict[str, str] = {}
    for spec in hardware.chassis:
        for port, host in spec.ports.items():
            if host is not None:
                ports.setdefault(host, {})[spec.name] = port
                pools[host] = spec.pool
    return tuple(NodeConfig(host, ports[host], pools[host]) for host in sorted(ports))


def _with(config: KubeCompConfig, options: Mapping[str, Any], where: str) -> KubeCompConfig:
    """The configuration with options changed: names of ``KubeCompConfig`` or of its ``Timing``."""
    fields = {f.name for f in dataclasses.fields(KubeCompConfig)} - {
        "chassis",
        "nodes",
        "timing",
        "allocate",
        "sysfs_root",
    }
    timing = {f.name for f in dataclasses.fields(Timing)}
    given = {**options, **options.get("timing", {})}
    given.pop("timing", None)
    for name, value in given.items():
        if name not in fields | timing:
            allowed = ", ".join(sorted(fields | timing))
            raise ScenarioError(f"{where}: stack.kubecomp: {name}: unknown option; allowed: {allowed}")
        if name in timing and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
            raise ScenarioError(f"{where}: stack.kubecomp: {name}: {value!r}: must be a number of seconds above 0")
    numbers: dict[str, Any] = {name: _number(name, value) for name, value in given.items() if name in timing}
    patience = dataclasses.replace(config.timing, **numbers)
    return dataclasses.replace(
        config, timing=patience, **{name: value for name, value in given.items() if name in fields}
    )


def _number(name: str, value: float) -> float | int:
    whole = isinstance(getattr(Timing, name, None), int) or name in ("retries", "vanish_reads", "empty_reads")
    return int(value) if whole else float(value)


def kod2_config(scenario: Scenario, pace: Pace) -> OperatorConfig:
    """The operator's configuration. Its limits are weighed against how long jobs train, which is emulated time.

    Raises ScenarioError for an option that it does not have.
    """
    from mews.systems.kod2.config import config_of
    from mews.systems.kod2.errors import ConfigError

    try:
        config = config_of(scenario.stack.kod2 or {}, f"{scenario.path or scenario.name}: stack.kod2")
    except ConfigError as error:
        raise ScenarioError(str(error)) from error
    return dataclasses.replace(
        config,
        starve_limit_s=pace.loop_s(config.starve_limit_s),
        cooldown_s=pace.loop_s(config.cooldown_s),
        tick_s=pace.loop_s(config.tick_s),
    )


def default_profile(scenario: Scenario) -> Profile:
    """The default scheduler's profile. ``scoring: random`` takes any node that fits, by the seed: what the paper says
    of it (the KOD2 paper, section 5.2).

    Raises ScenarioError for another word.
    """
    options = dict(scenario.stack.default_scheduler or {})
    scoring = options.pop("scoring", "default")
    if scoring not in ("default", "random"):
        where = f"{scenario.path or scenario.name}: stack.default_scheduler: scoring"
        raise ScenarioError(f"{where}: {scoring!r}: must be one of default, random")
    weights: dict[str, int] | None = {} if scoring == "random" else None
    return Profile("default-scheduler", default_plugins(**options), score_weights=weights)
