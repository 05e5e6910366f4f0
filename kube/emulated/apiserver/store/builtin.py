"""The table of built-in kinds (facts of Kubernetes 1.34's discovery; contract apiserver.md sections 1 to 7)."""

from __future__ import annotations

from typing import Any

from mews.kube.api.resources import Resource
from mews.kube.emulated.apiserver.store.kinds import ALL_VERBS, Kind, Subresource

_OBJECT_VERBS = ("get", "patch", "update")
_PROXY_VERBS = ("create", "delete", "get", "patch", "update")
_NO_COLLECTION_DELETE = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")


_PUT_CREATES = frozenset(
    (
        "endpoints", "events", "limitranges", "services", "leases", "runtimeclasses",
        "clusterrolebindings", "clusterroles", "rolebindings", "roles",
    )
)  # fmt: skip
"""Kinds that a PUT creates (``AllowCreateOnUpdate`` of their strategies)."""

_NAME_THEIR_VERSION = frozenset(
    (
        "apiservices", "customresourcedefinitions", "csidrivers", "csinodes", "csistoragecapacities", "leases",
        "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies",
        "validatingadmissionpolicybindings", "poddisruptionbudgets", "runtimeclasses", "volumeattachments",
    )
)  # fmt: skip
"""Kinds whose updates must say which version they change (no ``AllowUnconditionalUpdate``)."""


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
        put_creates=plural in _PUT_CREATES,
        must_name_version=plural in _NAME_THEIR_VERSION,
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
    Subresource("proxy", _PROXY_VERBS, "PodProxyOptions"),
    Subresource("resize", _OBJECT_VERBS, "Pod"),
)
_EVENT_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_OLD_ENDPOINTS = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)
_FIRST_BETA: dict[str, Any] = {"stored_version": "v1beta1"}
_SECOND_BETA: dict[str, Any] = {"stored_version": "v1beta2"}
"""What upstream of this release still stores for those of before."""

_STORED: dict[str, Any] = {"delete_answers_object": True}
_ASKED: dict[str, Any] = {"verbs": ("create",)}
"""Kinds that are answered (``reviews``), not stored."""

_KINDS: tuple[Kind, ...] = (
    _kind("v1", "bindings", "Binding", **_ASKED),
    _kind(
        "v1", "componentstatuses", "ComponentStatus", "cs", namespaced=False, verbs=("get", "list"),
        warning="v1 ComponentStatus is deprecated in v1.19+",
    ),
    _kind("v1", "configmaps", "ConfigMap", "cm"),
    _kind("v1", "endpoints", "Endpoints", "ep", warning=_OLD_ENDPOINTS),
    _kind(
        "v1", "events", "Event", "ev",
        selectable=(
            *(f"involvedObject.{name}" for name in _EVENT_REFERENCE),
            "reason", "reportingComponent", "source", "type",
        ),
    ),
    _kind("v1", "limitranges", "LimitRange", "limits"),
    _kind(
        "v1", "namespaces", "Namespace", "ns", namespaced=False, status=True, verbs=_NO_COLLECTION_DELETE,
        subresources=(Subresource("finalize", ("update",), "Namespace"),),
        selectable=("status.phase",), **_STORED,
    ),
    _kind(
        "v1", "nodes", "Node", "no", namespaced=False, status=True,
        selectable=("spec.unschedulable",), subresources=(Subresource("proxy", _PROXY_VERBS, "NodeProxyOptions"),),
    ),
    _kind("v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", status=True, **_STORED),
    _kind("v1", "persistentvolumes", "PersistentVolume", "pv", namespaced=False, status=True, **_STORED),
    _kind(
        "v1", "pods", "Pod", "po", status=True, categories=_ALL, subresources=_POD_SUBRESOURCES,
        generation=True,
        selectable=(
            "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
            "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
        ),
        **_STORED,
    ),
    _kind("v1", "podtemplates", "PodTemplate", generation=True),
    _kind(
        "v1", "replicationcontrollers", "ReplicationController", "rc",
        status=True, scale=True, categories=_ALL,
        generation=True, orphans=True, selectable=("status.replicas",),
    ),
    _kind("v1", "resourcequotas", "ResourceQuota", "quota", status=True, **_STORED),
    _kind("v1", "secrets", "Secret", selectable=("type",)),
    _kind(
        "v1", "serviceaccounts", "ServiceAccount", "sa",
        subresources=(Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io"),), **_STORED,
    ),
    _kind(
        "v1", "services", "Service", "svc", status=True, categories=_ALL,
        selectable=("spec.clusterIP", "spec.type"),
        subresources=(Subresource("proxy", _PROXY_VERBS, "ServiceProxyOptions"),), **_STORED,
    ),
    _kind(
        "apiregistration.k8s.io/v1", "apiservices", "APIService", namespaced=False, status=True, categories=_EXTENSIONS,
    ),
    *(
        _kind("authentication.k8s.io/v1", plural, kind, namespaced=False, **_ASKED)
        for plural, kind in (("selfsubjectreviews", "SelfSubjectReview"), ("tokenreviews", "TokenReview"))
    ),
    *(
        _kind("authorization.k8s.io/v1", plural, kind, namespaced=plural.startswith("local"), **_ASKED)
        for plural, kind in (
            ("localsubjectaccessreviews", "LocalSubjectAccessReview"),
            ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
            ("selfsubjectrulesreviews", "SelfSubjectRulesReview"),
            ("subjectaccessreviews", "SubjectAccessReview"),
        )
    ),
    *(
        _kind("flowcontrol.apiserver.k8s.io/v1", plural, kind, namespaced=False, status=True, generation=True)
        for plural, kind in (
            ("flowschemas", "FlowSchema"), ("prioritylevelconfigurations", "PriorityLevelConfiguration"),
        )
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
        "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", "crd crds", **_FIRST_BETA,
        namespaced=False, status=True, categories=_EXTENSIONS, generation=True,
    ),
    _kind("apps/v1", "controllerrevisions", "ControllerRevision"),
    _kind(
        "apps/v1", "daemonsets", "DaemonSet", "ds",
        status=True, categories=_ALL, generation=True
    ),
    _kind(
        "apps/v1", "deployments", "Deployment", "deploy",
        status=True, scale=True, categories=_ALL, generation=True,
    ),
    _kind(
        "apps/v1", "replicasets", "ReplicaSet", "rs",
        status=True, scale=True, categories=_ALL, generation=True,
    ),
    _kind(
        "apps/v1", "statefulsets", "StatefulSet", "sts",
        status=True, scale=True, categories=_ALL, generation=True
    ),
    _kind("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", status=True, categories=_ALL),
    _kind(
        "autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", status=True, categories=_ALL,
        stored_version="v2",
        view="autoscalers",
    ),
    _kind("batch/v1", "cronjobs", "CronJob", "cj", status=True, categories=_ALL, generation=True),
    _kind(
        "batch/v1", "jobs", "Job", status=True, orphans=True, categories=_ALL, generation=True,
        selectable=("status.successful",),
    ),
    _kind(
        "certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest", "csr", namespaced=False,
        status=True, selectable=("spec.signerName",),
        subresources=(
            Subresource("approval", _OBJECT_VERBS, "CertificateSigningRequest", "certificates.k8s.io"),
        ),
    ),
    _kind("coordination.k8s.io/v1", "leases", "Lease"),
    _kind("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", generation=True),
    _kind(
        "events.k8s.io/v1", "events", "Event", "ev", view="events",
        storage=("", "events"),
        selectable=(
            *(f"regarding.{name}" for name in _EVENT_REFERENCE),
            "reason", "reportingController", "type",
        ),
    ),
    _kind("networking.k8s.io/v1", "ingressclasses", "IngressClass", namespaced=False, generation=True),
    _kind("networking.k8s.io/v1", "ingresses", "Ingress", "ing", status=True, generation=True),
    _kind("networking.k8s.io/v1", "ipaddresses", "IPAddress", "ip", namespaced=False, generation=True),
    _kind("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR", namespaced=False, status=True),
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
    _kind(
        "resource.k8s.io/v1", "deviceclasses", "DeviceClass", namespaced=False, generation=True,
        **_SECOND_BETA, **_STORED,
    ),
    _kind("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", status=True, **_SECOND_BETA, **_STORED),
    _kind("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate", **_SECOND_BETA, **_STORED),
    _kind(
        "resource.k8s.io/v1", "resourceslices", "ResourceSlice", namespaced=False, generation=True, **_SECOND_BETA,
        selectable=("spec.nodeName", "spec.driver"), **_STORED,
    ),
    _kind(
        "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", "pc", namespaced=False,
    ),
    _kind("storage.k8s.io/v1", "csidrivers", "CSIDriver", namespaced=False, **_STORED),
    _kind("storage.k8s.io/v1", "csinodes", "CSINode", namespaced=False, **_STORED),
    _kind("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity", **_STORED),
    _kind("storage.k8s.io/v1", "storageclasses", "StorageClass", "sc", namespaced=False, **_STORED),
    _kind("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", namespaced=False, status=True, **_STORED),
    _kind(
        "storage.k8s.io/v1", "volumeattributesclasses", "VolumeAttributesClass", "vac", namespaced=False,
        **_FIRST_BETA, **_STORED,
    ),
)  # fmt: skip

_GROUPS = (
    "", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
    "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
    "storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
    "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io",
)  # fmt: skip
"""In the order of their priority, as discovery lists them."""

BUILTIN: tuple[Kind, ...] = tuple(kind for group in _GROUPS for kind in _KINDS if kind.resource.group == group)
