"""A second scheduler beside the default one, as a system of a stack: ours again, by a name of its own or the same."""

from __future__ import annotations

from typing import Literal

import pytest
from msgspec import Struct
from pydantic import ConfigDict

from mews.kube.component import Runnable
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.scheduler import Scheduler
from mews.kube.system.facility import Facility
from mews.kube.system.options import OptionsModel
from mews.kube.system.ports import Ports
from mews.kube.system.system import Component, System
from mews.systems import registry

NAME = "second-scheduler"


class SecondOptions(OptionsModel):
    """``answers``: the schedulerName of the pods that it takes."""

    model_config = ConfigDict()
    answers: Literal["second-scheduler", "default-scheduler"] = "second-scheduler"


class SecondConfig(Struct, frozen=True):
    """As the options."""

    answers: str


def _scheduler(ports: Ports, config: SecondConfig) -> Runnable:
    profile = SchedulerProfile(config.answers, default_plugins(devices=ports.devices))
    return Scheduler(ports.context, SchedulerConfig((profile,)))


def _configure(options: SecondOptions, facility: Facility) -> SecondConfig:
    return SecondConfig(options.answers)


SYSTEM: System[SecondOptions, SecondConfig] = System(
    name=NAME,
    summary="a second scheduler",
    options=SecondOptions,
    configure=_configure,
    components=(Component("second", _scheduler),),
)


def install(patch: pytest.MonkeyPatch) -> None:
    """Let stacks have it."""
    known, names = registry.system, registry.names
    patch.setattr(registry, "system", lambda name: SYSTEM if name == NAME else known(name))
    patch.setattr(registry, "names", lambda: (*names(), NAME))
