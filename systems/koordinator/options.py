"""Options of Koordinator in a scenario: ``stack.koordinator``."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from mews.kube.system.options import SECONDS, OptionsModel
from mews.systems.koordinator.policy import Choice


class KoordinatorOptions(OptionsModel):
    """How devices are chosen, and how long gangs wait."""

    model_config = ConfigDict(alias_generator=to_camel)

    device_choice: Choice = Field(
        default="auto",
        description="minor: as the seed says; leastAllocated; bandwidth: the fastest pairs; auto: bandwidth for more "
        "than one device whose links are known, leastAllocated otherwise",
    )
    gang_wait_s: SECONDS = Field(default=60.0, description="how long pods of a gang wait for each other to be placed")
