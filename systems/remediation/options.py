"""Options of the remediation in a scenario: ``stack.remediation``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from mews.kube.system.options import SECONDS, OptionsModel

Mode = Literal["Immediate", "AllowCompletion", "DeleteAfterTimeout"]
Share = Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)]


class RemediationOptions(OptionsModel):
    """What is cordoned, who is sent away and how, and how many nodes at a time."""

    model_config = ConfigDict(alias_generator=to_camel)

    scope: Literal["device", "node"] = Field(
        default="node", description="node: cordon the node of a broken GPU while it is mended; device: only the GPU"
    )
    drain: Literal["device", "node"] = Field(
        default="device", description="evict the pods that use the broken GPU, or all pods of its node"
    )
    evictions: dict[str, Mode] = Field(
        default={"*": "Immediate"}, min_length=1, description="namespace or pattern: mode; the first that fits counts"
    )
    grace_s: int | None = Field(
        default=None, ge=0, strict=True, description="grace period of immediate evictions; by default the pod's own"
    )
    delete_after_s: SECONDS = Field(default=3600.0, description="when DeleteAfterTimeout deletes the pods left")
    kept: tuple[str, ...] = Field(default=("kube-system",), description="namespaces whose pods are never evicted")
    share: Share = Field(default=0.5, description="of the nodes that are worked on at a time, but at least one")
    poll_s: SECONDS = Field(default=1.0, description="how often the agent looks at its GPUs")
    reset_s: SECONDS = Field(default=120.0, description="how long a reset may be refused before the GPU is given up")
    nodes: tuple[str, ...] | None = Field(default=None, description="the watched nodes; default: all")

    @model_validator(mode="after")
    def _whole_nodes_are_cordoned(self) -> Self:
        if self.drain == "node" and self.scope != "node":
            raise ValueError("drain: node requires scope: node: the pods would come back to a node without a cordon")
        return self
