"""Options of the GPU driver in a scenario: ``stack.dra``."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from mews.kube.system.options import SECONDS, OptionsModel


class DraOptions(OptionsModel):
    """Which nodes have the driver, and how often it looks at its GPUs."""

    model_config = ConfigDict(alias_generator=to_camel)

    poll_s: SECONDS = Field(default=1.0, description="how often the driver looks at its GPUs")
    nodes: tuple[str, ...] | None = Field(default=None, description="those with a driver; by default all")
