"""The table of built-in kinds (facts of Kubernetes 1.34's discovery; contract apiserver.md sections 1 to 7)."""

from __future__ import annotations

from typing import Any

from mews.harness.clusters.embedded.kinds import ALL_VERBS, Kind, Subresource
from mews.kube.api.resources import Resource

_OBJECT_VERBS = ("get", "patch", "update")
_NO_COLLECTION_DELETE = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")


def _kind(
    api_version: str,
    plural: str,
    kind: str,
    short_names: str = "",
    *,
    namespaced: bool = True,
    status: bool = False,
    scale: bool = False,
    **more: Any,
) -> Kind:
    group, _, version = api_version.rpartition("/")
    subresources = tuple(more.pop("subresources", ()))
    if scale:
        subresources += (Subresource("scale", _OBJECT_VERBS, "Scale", "autoscaling"),)
    if status:
        subresources += (Subresource("status", _OBJECT_VERBS, kind, group, version),)
    return Kind(
        resource=Resource(group, version, plural, kind, namespaced),
        singular=kind.lower(),
        short_names=tuple(short_names.split()),
        subresources=subresources,
        status=status,
        **{"storage": (group, plural), **more},
    )


_POD_SUBRESOURCES = (
    Subresource("attach", ("create", "get"), "PodAttachOptions"),
    Subresource("binding", ("create",), "Binding"),
    Subresource("ephemeralcontainers", _OBJECT_VERBS, "Pod"),
    Subresource("eviction", ("create",), "Eviction", "policy"),
    Subresource("exec", ("create", "get"), "PodExecOptions"),
    Subresource("log", ("get",), "Pod"),
    Subresource("portforward", ("create", "get"), "PodPortForwardOptions"),
    Subresource("proxy", ("create", "delete", "get", "patch", "update"), "PodProxyOptions"),
    Subresource("resize", _OBJECT_VERBS, "Pod"),
)
_EVENT_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)
_STORED: dict[str, Any] = {"delete_answers_object": True}

BUILTIN: tuple[Kind, ...] = (
    _kind("v1", "configmaps", "ConfigMap", "cm", rules="configmaps", table="configmaps"),
    _kind("v1", "endpoints", "Endpoints", "ep"),
    _kind(
        "v1", "events", "Event", "ev", table="events", rules="events", put_creates=True,
        selectable=(
            *(f"involvedObject.{name}" for name in _EVENT_REFERENCE),
            "reason", "reportingComponent", "source", "type",
        ),
    ),
    _kind("v1", "limitranges", "LimitRange", "limits"),
    _kind(
        "v1", "namespaces", "Namespace", "ns", namespaced=False, status=True, verbs=_NO_COLLECTION_DELETE,
        subresources=(Subresource("finalize", ("update",), "Namespace"),),
        rules="namespaces", table="namespaces", selectable=("status.phase",), **_STORED,
    ),
    _kind(
        "v1", "nodes", "Node", "no", namespaced=False, status=True, rules="nodes", table="nodes",
        selectable=("spec.unschedulable",),
    ),
    _kind("v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", status=True, **_STORED),
    _kind("v1", "persistentvolumes", "PersistentVolume", "pv", namespaced=False, status=True, **_STORED),
    _kind(
        "v1", "pods", "Pod", "po", status=True, categories=_ALL, subresources=_POD_SUBRESOURCES, rules="pods",
        table="pods", generation=True,
        selectable=(
            "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
            "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
        ),
        **_STORED,
    ),
    _kind("v1", "podtemplates", "PodTemplate"),
    _kind(
        "v1", "replicationcontrollers", "ReplicationController", "rc", status=True, scale=True, categories=_ALL,
        generation=True,
    ),
    _kind("v1", "resourcequotas", "ResourceQuota", "quota", status=True, **_STORED),
    _kind("v1", "secrets", "Secret", rules="secrets", selectable=("type",), table="secrets"),
    _kind("v1", "serviceaccounts", "ServiceAccount", "sa", table="serviceaccounts", **_STORED),
    _kind(
        "v1", "services", "Service", "svc", status=True, categories=_ALL, table="services",
        rules="services", **_STORED,
    ),
    *(
        _kind(
            "admissionregistration.k8s.io/v1", plural, kind, namespaced=False, categories=_EXTENSIONS,
            generation=True, status=plural == "validatingadmissionpolicies",
        )
        for plural, kind in (
            ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
            ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
            ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
            ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        )
    ),
    _kind(
        "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", "crd crds",
        namespaced=False, status=True, categories=_EXTENSIONS, generation=True, rules="crds", table="crds",
    ),
    _kind("apps/v1", "controllerrevisions", "ControllerRevision"),
    _kind("apps/v1", "daemonsets", "DaemonSet", "ds", status=True, categories=_ALL, generation=True),
    _kind(
        "apps/v1", "deployments", "Deployment", "deploy", status=True, scale=True, categories=_ALL, generation=True,
        table="deployments",
    ),
    _kind(
        "apps/v1", "replicasets", "ReplicaSet", "rs", status=True, scale=True, categories=_ALL, generation=True,
        selectable=("status.replicas",), table="replicasets",
    ),
    _kind(
        "apps/v1", "statefulsets", "StatefulSet", "sts", status=True, scale=True, categories=_ALL, generation=True
    ),
    _kind("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", status=True, categories=_ALL),
    _kind("batch/v1", "cronjobs", "CronJob", "cj", status=True, categories=_ALL, generation=True),
    _kind(
        "batch/v1", "jobs", "Job", status=True, categories=_ALL, generation=True,
        selectable=("status.successful",), table="jobs",
    ),
    _kind(
        "certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest", "csr", namespaced=False,
        status=True,
    ),
    _kind(
        "coordination.k8s.io/v1", "leases", "Lease", rules="leases", table="leases", must_name_version=True,
        put_creates=True,
    ),
    _kind("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", generation=True),
    _kind(
        "events.k8s.io/v1", "events", "Event", "ev", table="events", rules="events", view="events", put_creates=True,
        storage=("", "events"),
        selectable=(
            *(f"regarding.{name}" for name in _EVENT_REFERENCE),
            "reason", "reportingController", "type",
        ),
    ),
    _kind("networking.k8s.io/v1", "ingressclasses", "IngressClass", namespaced=False, generation=True),
    _kind("networking.k8s.io/v1", "ingresses", "Ingress", "ing", status=True, generation=True),
    _kind("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", "netpol", generation=True),
    _kind("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", namespaced=False),
    _kind("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", status=True, generation=True),
    *(
        _kind("rbac.authorization.k8s.io/v1", plural, kind, namespaced=not plural.startswith("cluster"))
        for plural, kind in (
            ("clusterrolebindings", "ClusterRoleBinding"), ("clusterroles", "ClusterRole"),
            ("rolebindings", "RoleBinding"), ("roles", "Role"),
        )
    ),
    _kind("resource.k8s.io/v1", "deviceclasses", "DeviceClass", namespaced=False, generation=True, **_STORED),
    _kind("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", status=True, **_STORED),
    _kind("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate", **_STORED),
    _kind(
        "resource.k8s.io/v1", "resourceslices", "ResourceSlice", namespaced=False, generation=True,
        selectable=("spec.nodeName", "spec.driver"), **_STORED,
    ),
    _kind(
        "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", "pc", namespaced=False, generation=True,
        rules="priorityclasses", table="priorityclasses",
    ),
    _kind("storage.k8s.io/v1", "csidrivers", "CSIDriver", namespaced=False, **_STORED),
    _kind("storage.k8s.io/v1", "csinodes", "CSINode", namespaced=False, **_STORED),
    _kind("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity", **_STORED),
    _kind("storage.k8s.io/v1", "storageclasses", "StorageClass", "sc", namespaced=False, **_STORED),
    _kind("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", namespaced=False, status=True, **_STORED),
    _kind("storage.k8s.io/v1", "volumeattributesclasses", "VolumeAttributesClass", "vac", namespaced=False, **_STORED),
)  # fmt: skip
