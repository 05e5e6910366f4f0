"""KOD2, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.component import Runnable
from mews.kube.system.facility import Facility
from mews.kube.system.options import OptionsModel
from mews.kube.system.ports import Ports
from mews.kube.system.system import Component, System
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.options import Kod2Options


def configure(options: OptionsModel, facility: Facility) -> OperatorConfig:
    """The operator's settings. Its limits are weighed against how long jobs train, which is emulated time."""
    config = replace(OperatorConfig(), **options.given())
    config = replace(
        config,
        starve_limit_s=config.starve_limit_s / facility.speed,
        cooldown_s=config.cooldown_s / facility.speed,
        tick_s=config.tick_s / facility.speed,
    )
    return config if facility.namespace is None else replace(config, pool_namespace=facility.namespace)


def _operator(ports: Ports, config: OperatorConfig) -> Runnable:
    from mews.systems.kod2.operator import Operator

    return Operator(ports.context, config)


def _kinds() -> Sequence[Object]:
    from mews.systems.kod2.install import crd

    return (crd(),)


def _document(config: OperatorConfig) -> Mapping[str, Any]:
    return asdict(config)


SYSTEM = System(
    name="kod2",
    summary="runs TFJobs, and takes workers from some and gives them to others as the cluster fills and empties",
    options=Kod2Options,
    configure=configure,
    components=(Component("operator", _operator),),
    namespace=lambda config: str(config.pool_namespace),
    document=_document,
    kinds=_kinds,
    service_names=True,
)
"""What the harness knows of it."""
