"""The wire languages of chassis, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mews.kube.chassis.h3api import H3Api
from mews.kube.chassis.port import ChassisApi, Transport
from mews.kube.chassis.resource_pool import ResourcePool

DIALECTS: Mapping[str, Callable[[Transport], ChassisApi]] = {"h3api": H3Api, "resource-pool": ResourcePool}
