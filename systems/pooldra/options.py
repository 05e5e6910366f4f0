"""Options of the pool driver in a scenario: ``stack.pooldra``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from mews.kube.system.options import COUNT, SECONDS, TEXT, OptionsModel


class PoolDraOptions(OptionsModel):
    """How a device is handed over, and how long things may take."""

    model_config = ConfigDict(alias_generator=to_camel)

    hand_over: Literal["reallocate", "in-place", "move"] = Field(
        default="in-place",
        description="after the attach: reallocate the claim from the node's slice, keep the pool's device, or move "
        "the device to the node's slice",
    )
    attributes: Mapping[TEXT, TEXT] = Field(
        default_factory=dict,
        description="more attributes of each pool device, in addition to type, uuid, chassis and slot",
    )
    keep_s: SECONDS = Field(default=10.0, description="how long a device stays on a host where no claim uses it")
    appear_s: SECONDS = Field(default=45.0, description="within which a host must show a device that was attached")
    tries: COUNT = Field(default=3, description="how often a device is attached in vain before its claim fails")
    retry_s: SECONDS = Field(default=60.0, description="how long a device that failed is not offered")
    node_lost_s: SECONDS = Field(
        default=60.0, description="after which devices are taken from a node that is not ready, without asking it"
    )
    poll_s: SECONDS = Field(default=1.0, description="how often a node's driver looks at its GPUs")
    pool_poll_s: SECONDS = Field(default=5.0, description="how often each chassis is read")
