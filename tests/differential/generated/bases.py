"""One good object of each built-in kind, from which cases are made. The name is put in when it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.differential.generated.base_workloads import POD_SPEC, RARE_POD_SPEC, WORKLOADS
from tests.differential.generated.bases_of_groups import OF_GROUPS
from tests.differential.generated.bases_of_late_groups import OF_LATE_GROUPS

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Base:
    """A kind (``apps/v1/Deployment``), its path, and a good object; ``names``: those of objects that must have other
    names than ``old`` and ``new``."""

    kind: str
    plural: str
    body: Body
    namespaced: bool = True
    updates: bool = True
    has_status: bool = False
    names: Mapping[str, str] | None = None
    variant: str = ""

    def folder(self, space: str) -> str:
        """The path of its objects."""
        api_version = self.kind.rpartition("/")[0]
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        return f"{root}/namespaces/{space}/{self.plural}" if self.namespaced else f"{root}/{self.plural}"

    def name(self, which: str) -> str:
        """The name of the ``old`` or the ``new`` object."""
        return self.names[which] if self.names else "-".join(filter(None, ("fields", self.variant, which)))

    def named(self, which: str) -> dict[str, Any]:
        """The good object under its name."""
        api_version, _, kind = self.kind.rpartition("/")
        metadata = {**self.body.get("metadata", {}), **({} if self.kind in _NAMELESS else {"name": self.name(which)})}
        body = {"apiVersion": api_version, "kind": kind, **self.body, "metadata": metadata}
        special = _OF_NAME.get(self.kind)
        return special(body) if special else body


_NAMELESS = (
    "authorization.k8s.io/v1/LocalSubjectAccessReview",
    "authorization.k8s.io/v1/SelfSubjectAccessReview",
    "authorization.k8s.io/v1/SubjectAccessReview",
)
"""Kinds whose metadata must be empty."""


def _definition(body: dict[str, Any]) -> dict[str, Any]:
    plural, _, group = body["metadata"]["name"].partition(".")
    names = {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title(), "listKind": "FieldList"}
    names = {**body["spec"]["names"], **names, "listKind": f"{names['kind']}List"}
    return {**body, "spec": {**body["spec"], "group": group, "names": names}}


def _service_of_api(body: dict[str, Any]) -> dict[str, Any]:
    version, _, group = body["metadata"]["name"].partition(".")
    return {**body, "spec": {**body["spec"], "group": group, "version": version}}


_OF_NAME: Mapping[str, Any] = {
    "apiextensions.k8s.io/v1/CustomResourceDefinition": _definition,
    "apiregistration.k8s.io/v1/APIService": _service_of_api,
}

_META: Body = {"labels": {"app": "x"}, "annotations": {"note": "x"}}
_REFERENCE = {"kind": "Pod", "name": "p", "namespace": "fields", "apiVersion": "v1", "uid": "u"}

_CORE: tuple[Base, ...] = (
    Base("v1/ConfigMap", "configmaps", {"data": {"a": "b"}, "binaryData": {"b": "YQ=="}, "immutable": False}),
    Base(
        "v1/Endpoints",
        "endpoints",
        {
            "subsets": [
                {
                    "addresses": [{"ip": "10.0.0.1", "hostname": "h", "nodeName": "n", "targetRef": _REFERENCE}],
                    "ports": [{"name": "web", "port": 80, "protocol": "TCP", "appProtocol": "http"}],
                }
            ]
        },
    ),
    Base(
        "v1/Event",
        "events",
        {
            "involvedObject": _REFERENCE,
            "reason": "Tested",
            "message": "hello",
            "type": "Normal",
            "source": {"component": "me", "host": "h"},
            "count": 3,
            "firstTimestamp": "2024-01-02T03:04:05Z",
            "lastTimestamp": "2024-01-02T03:04:05Z",
        },
    ),
    Base(
        "v1/LimitRange",
        "limitranges",
        {
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "2"},
                        "min": {"cpu": "100m"},
                        "default": {"cpu": "1"},
                        "defaultRequest": {"cpu": "500m"},
                        "maxLimitRequestRatio": {"cpu": "10"},
                    }
                ]
            }
        },
    ),
    Base("v1/Namespace", "namespaces", {"metadata": _META, "spec": {"finalizers": ["kubernetes"]}}, False, True, True),
    Base(
        "v1/Node",
        "nodes",
        {
            "metadata": _META,
            "spec": {
                "podCIDR": "10.200.0.0/24",
                "podCIDRs": ["10.200.0.0/24"],
                "providerID": "emulated://x",
                "taints": [{"key": "example.com/t", "value": "v", "effect": "NoSchedule"}],
            },
            "status": {
                "capacity": {"cpu": "4"},
                "allocatable": {"cpu": "4"},
                "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
        False,
        True,
        True,
    ),
    Base(
        "v1/PersistentVolumeClaim",
        "persistentvolumeclaims",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "standard",
                "volumeMode": "Filesystem",
                "selector": {"matchLabels": {"a": "b"}},
            }
        },
        True,
        True,
        True,
    ),
    Base(
        "v1/PersistentVolume",
        "persistentvolumes",
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "standard",
                "hostPath": {"path": "/data", "type": "Directory"},
            }
        },
        False,
        True,
        True,
    ),
    Base("v1/Pod", "pods", {"metadata": _META, "spec": POD_SPEC}, True, True, True),
    Base(
        "v1/ResourceQuota",
        "resourcequotas",
        {
            "spec": {
                "hard": {"pods": "100"},
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["none-such"]}]
                },
            }
        },
        True,
        True,
        True,
    ),
    Base("v1/Secret", "secrets", {"type": "Opaque", "data": {"a": "YQ=="}, "immutable": False}),
    Base(
        "v1/ServiceAccount",
        "serviceaccounts",
        {"secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}], "automountServiceAccountToken": True},
    ),
    Base(
        "v1/Service",
        "services",
        {
            "spec": {
                "selector": {"app": "x"},
                "type": "NodePort",
                "ports": [{"name": "web", "port": 80, "targetPort": 8080, "protocol": "TCP", "appProtocol": "http"}],
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 100}},
                "externalIPs": ["192.0.2.1"],
            }
        },
        True,
        True,
        True,
    ),
    Base("v1/Binding", "bindings", {"target": {"kind": "Node", "name": "n"}}, updates=False),
)

_IN_JSON = {"data": {".dockerconfigjson": "eyJhdXRocyI6e319"}, "type": "kubernetes.io/dockerconfigjson"}
_AT_A_HOOK = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "default", "name": "none", "path": "/x", "port": 443}},
    },
}
_DEFINITION = next(entry for entry in OF_LATE_GROUPS if entry[1] == "customresourcedefinitions")
_CONVERTED = {"spec": {**_DEFINITION[2]["spec"], "conversion": _AT_A_HOOK}}
_OUTER_NAME = {"spec": {"type": "ExternalName", "externalName": "a.example.com"}}
_BALANCED = {
    "spec": {
        "type": "LoadBalancer",
        "selector": {"app": "x"},
        "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}],
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "externalTrafficPolicy": "Local",
        "loadBalancerClass": "example.com/lb",
    }
}
_IN_ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
_DRIVEN = {
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "d.example.com", "volumeHandle": "h", "nodeStageSecretRef": {"name": "s", "namespace": "n"}},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
            }
        },
    }
}
VARIANTS: tuple[Base, ...] = (
    Base("v1/Secret", "secrets", _IN_JSON, variant="docker"),
    Base("v1/Pod", "pods", {"spec": RARE_POD_SPEC}, True, True, True, variant="rare"),
    Base("v1/Service", "services", _OUTER_NAME, True, True, True, variant="outer"),
    Base("v1/Service", "services", _BALANCED, True, True, True, variant="balanced"),
    Base("v1/PersistentVolume", "persistentvolumes", _DRIVEN, False, True, True, variant="driven"),
    Base(
        _DEFINITION[0],
        _DEFINITION[1],
        _CONVERTED,
        False,
        True,
        True,
        {"old": "hookeds.fields.example.com", "new": "hookednews.fields.example.com"},
        "hooked",
    ),
)
"""Further good objects of kinds whose rules depend on a type."""

BASES: tuple[Base, ...] = (*_CORE, *(Base(*entry) for entry in (*WORKLOADS, *OF_GROUPS, *OF_LATE_GROUPS)), *VARIANTS)
