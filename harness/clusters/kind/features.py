"""What a kind cluster is created with, as kind's own file has it (kind.sigs.k8s.io/docs/user/configuration). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from mews.yaml_text import written_yaml

_STATUS_S = "1s"
"""How often kubelets look whether their node's status changed; their default is 10 s."""


class ClusterFeatures(Struct, frozen=True):
    """``gates``: feature gates that are on in all of Kubernetes' programs, ``served``: API versions (GROUP/VERSION)
    that the API server serves besides its own, ``provider_ids``: host -> that of its node, where it is not kind's."""

    gates: tuple[str, ...] = ()
    served: tuple[str, ...] = ()
    provider_ids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, written: object) -> ClusterFeatures:
        """Return those that ``written`` has written; those of a plain cluster for anything else."""
        try:
            return msgspec.convert(written, cls)
        except msgspec.ValidationError:
            return PLAIN

    def written(self) -> Any:
        """Return them as JSON has them."""
        return msgspec.to_builtins(self)

    def __str__(self) -> str:
        switched = (*self.gates, *self.served, *(["provider IDs of its own"] if self.provider_ids else ()))
        return ", ".join(switched) or "the features of every cluster"


PLAIN = ClusterFeatures()
"""Those of a cluster for most scenarios."""


def kind_config(hosts: Sequence[str], features: ClusterFeatures = PLAIN) -> str:
    """kind's own file: nodes bear the hosts' names."""
    status = {"kind": "KubeletConfiguration", "nodeStatusUpdateFrequency": _STATUS_S, "nodeStatusReportFrequency": "5m"}
    nodes: list[dict[str, object]] = [{"role": "control-plane"}]
    for host in hosts:
        registration: dict[str, Any] = {"name": host}
        if host in features.provider_ids:
            registration["kubeletExtraArgs"] = {"provider-id": features.provider_ids[host]}
        named = {"kind": "JoinConfiguration", "nodeRegistration": registration}
        nodes.append({"role": "worker", "kubeadmConfigPatches": [written_yaml(named)]})
    config: dict[str, Any] = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "kubeadmConfigPatches": [written_yaml(status)],
        "nodes": nodes,
    }
    if features.gates:
        config["featureGates"] = dict.fromkeys(features.gates, True)
    if features.served:
        config["runtimeConfig"] = dict.fromkeys(features.served, "true")
    return written_yaml(config)
