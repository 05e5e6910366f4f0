"""Options of GPU Share in a scenario: ``stack.gpushare``."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from mews.kube.system.options import SECONDS, OptionsModel


class GpuShareOptions(OptionsModel):
    """Unit of memory, matching, replicas of the extender, and which nodes share their GPUs."""

    model_config = ConfigDict(alias_generator=to_camel)

    unit: Literal["MiB", "256MiB", "GiB", "auto"] = Field(
        default="auto", description="of gpu-mem: MiB as designed, GiB as published; auto: the finest that kubelets take"
    )
    match: Literal["pods", "seed"] = Field(
        default="pods", description="how Allocate finds its pod; seed: by amount and time of assumption alone"
    )
    replicas: int = Field(default=1, ge=1, le=2, strict=True, description="of the extender, behind one service")
    nodes: tuple[str, ...] | None = Field(default=None, description="those whose GPUs are shared; by default all")
    on_shared: Literal["refuse", "evict"] = Field(
        default="refuse",
        description="when the pool asks for a GPU that pods share: refuse, they keep it; evict, they are evicted "
        "first, unless a PodDisruptionBudget protects one",
    )
    evict_s: SECONDS = Field(default=90.0, description="how long pods may take to end after their eviction")
    poll_s: SECONDS = Field(default=1.0, description="how often the plugin looks at its GPUs")
