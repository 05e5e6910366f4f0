"""Options of the GPU driver in a scenario: ``stack.dra``."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from mews.kube.system.options import SECONDS, OptionsModel


class DraOptions(OptionsModel):
    """Which nodes have the driver, how often it looks at its GPUs, and whether it watches their health."""

    model_config = ConfigDict(alias_generator=to_camel)

    poll_s: SECONDS = Field(default=1.0, description="how often the driver looks at its GPUs")
    nodes: tuple[str, ...] | None = Field(default=None, description="those with a driver; by default all")
    health: bool = Field(
        default=False,
        description="watch the XIDs of GPUs, report their health and taint broken ones; NVML then stays open, which "
        "keeps GPUs from being removed or reset",
    )
