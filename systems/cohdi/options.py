"""Options of CoHDI in a scenario: ``stack.cohdi``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from mews.kube.system.options import OptionsModel

_SCAN: Any = Annotated[int, Field(strict=True, ge=5, le=86_400)]
_GPU: Any = Annotated[str, Field(strict=True, pattern=r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
_SECONDS: Any = Annotated[int, Field(strict=True, ge=0, le=86_400)]


class CohdiOptions(OptionsModel):
    """Where the programs are, how often they look, and how long an attached GPU stays that no claim uses."""

    model_config = ConfigDict(alias_generator=to_camel)

    programs: str | None = Field(
        default=None,
        min_length=1,
        description="the folder with the programs cdd, cro-manager and dds-manager; by default MEWS_COHDI_PROGRAMS",
    )
    chassis: str | None = Field(
        default=None, description="the chassis whose fabric manager they are given; by default the first"
    )
    operator: Literal["fm", "cdim"] = Field(
        default="fm", description="the dialect that the operator speaks to the chassis; the driver always speaks fm"
    )
    provisional_gpu: _GPU | None = Field(
        default=None,
        description="NEC_PROVISIONAL_GPU_UUID, required with operator: cdim: the UUID of the first free GPU, which the "
        "operator takes every GPU for",
    )
    scan_s: _SCAN = Field(default=5, description="seconds between two looks of the driver and of the scaler")
    no_removal_s: _SECONDS = Field(
        default=20, description="DEVICE_NO_REMOVAL_DURATION: seconds that an unused GPU stays attached (theirs: 600)"
    )
    no_allocation_s: _SECONDS = Field(
        default=10,
        description="DEVICE_NO_ALLOCATION_DURATION: seconds before an attached GPU is given again (theirs: 60)",
    )
