"""What may not be changed, with the structs that messages show; who gives out rights; what a group does not serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.differential.areas.bodies import opened, place
from tests.differential.model import APPLY, MERGE, STRATEGIC, TABLE, Case, Sent

_WHERE = place("changes")
_AUTH = "/apis/rbac.authorization.k8s.io/v1"
_STORAGE = "/apis/storage.k8s.io/v1/volumeattachments"
_CLAIMS = f"{_WHERE}/persistentvolumeclaims"
_PODS = f"{_WHERE}/pods"
_TOKENS = f"{_WHERE}/serviceaccounts/robot/token"
_APPS = "/apis/apps/v1/namespaces/changes/deployments"
_BATCH = "/apis/batch/v1/namespaces/changes/jobs"
_DEVICES = "/apis/resource.k8s.io/v1/namespaces/changes/resourceclaims"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_AS_ANN = {"Impersonate-User": "ann"}
_POD_SPEC = {
    "containers": [{"name": "c", "image": "i", "securityContext": {"runAsUser": 5}}],
    "volumes": [{"name": "v", "configMap": {"name": "m"}}],
    "hostPID": True,
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    ]}},
}  # fmt: skip
_OTHER_PROBE = {"httpGet": {"port": "web", "path": "/"}}


_TORN = {
    "name": "c",
    "image": "i",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}},
}


def _create(name: str, path: str, body: Mapping[str, Any], **words: Any) -> Sent:
    return Sent(name, "POST", path, body, **words)


def _change(name: str, path: str, body: Any, media: str = STRATEGIC, **words: Any) -> Sent:
    return Sent(name, "PATCH", path, body, media, **words)


def _named(name: str, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **parts}


def _debugger(image: str) -> dict[str, Any]:
    return {"spec": {"ephemeralContainers": [{"name": "e", "image": image}]}}


def _request(device_class: str) -> dict[str, Any]:
    exactly = {"deviceClassName": device_class}
    return {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}


_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"}
_VOLUME = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/a"},
    "persistentVolumeReclaimPolicy": "Recycle",
}
_JOB = {
    "suspend": True,
    "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
}
_WORKLOAD = {
    "replicas": 1,
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}
_ATTACHED = {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "p"}}
_STATEFUL = {
    **_WORKLOAD,
    "serviceName": "s",
    "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": _CLAIM}],
    "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}},
}
_NO_SCALES = {
    "a text for its spec": '{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": "x"}',
    "a list for its spec": '{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": [1]}',
    "a text of replicas": '{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": "three"}}',
    "a text for its metadata": '{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": "x"}',
    "a field that is none": '{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replica": 1}}',
}
"""Bodies that are no Scale, by what is wrong."""
_SCALE = '{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}}'
_EVICTION = {
    "apiVersion": "policy/v1",
    "kind": "Eviction",
    "metadata": {"name": "p"},
    "deleteOptions": {"preconditions": {"uid": "another"}},
}
_CLUSTER_RULES = [
    {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "get", "update"]}
]
_MORE = [{"apiGroups": ["apps"], "resources": ["deployments", "replicasets"], "verbs": ["get", "delete"]}]
_TO_ADMIN = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
_SERVER = {
    "group": "other.example.com",
    "version": "v1",
    "groupPriorityMinimum": 100,
    "versionPriority": 10,
    "service": {"name": "none", "namespace": "changes"},
}


def _of_pods() -> tuple[Case, ...]:
    return (
        _create("pod", _PODS, _named("p", spec=_POD_SPEC)),
        _change("spec of a pod", f"{_PODS}/p", {"spec": {"terminationGracePeriodSeconds": 5}}),
        _change(
            "probe of a pod", f"{_PODS}/p", {"spec": {"containers": [{"name": "c", "livenessProbe": _OTHER_PROBE}]}}
        ),
        _change("affinity of a pod", f"{_PODS}/p", {"spec": {"affinity": None, "hostPID": False}}, MERGE),
        _change("first debugger", f"{_PODS}/p/ephemeralcontainers", _debugger("x")),
        _change("another image of the debugger", f"{_PODS}/p/ephemeralcontainers", _debugger("y")),
        _change("one address of a pod", f"{_PODS}/p/status", {"status": {"podIP": "10.0.0.1"}}),
        _change("another address first", f"{_PODS}/p/status", {"status": {"podIPs": [{"ip": "10.0.0.9"}]}}, MERGE),
        _create("evict another", f"{_PODS}/p/eviction", _EVICTION),
        Sent("pod that was not evicted", "GET", f"{_PODS}/p"),
        _create("pod that may and may not", _PODS, _named("x", spec={"containers": [_TORN]})),
        Sent("logs where there is no node", "GET", f"{_PODS}/p/log"),
    )


def _of_storage() -> tuple[Case, ...]:
    volumes = "/api/v1/persistentvolumes"
    return (
        _create("claim", _CLAIMS, _named("c", spec=_CLAIM)),
        _change("modes of a claim", f"{_CLAIMS}/c", {"spec": {"accessModes": ["ReadOnlyMany"]}}, MERGE),
        _change("size of a claim", f"{_CLAIMS}/c", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}, MERGE),
        _create("volume", volumes, _named("changed", spec=_VOLUME)),
        _change("source of a volume", f"{volumes}/changed", {"spec": {"hostPath": {"path": "/b"}}}, MERGE),
        _create("attachment", _STORAGE, _named("changed", spec=_ATTACHED)),
        _change("node of an attachment", f"{_STORAGE}/changed", {"spec": {"nodeName": "m"}}, MERGE),
        _create("device claim", _DEVICES, {**_named("c"), **_request("a")}),
        _change("devices of a claim", f"{_DEVICES}/c", _request("b"), MERGE),
        _create("stateful set", "/apis/apps/v1/namespaces/changes/statefulsets", _named("s", spec=_STATEFUL)),
    )


def _of_workloads() -> tuple[Case, ...]:
    return (
        _create("job", _BATCH, _named("j", spec=_JOB)),
        _change("template of a job", f"{_BATCH}/j", {"spec": {"template": {"spec": {"hostNetwork": True}}}}),
        Sent("delete another job", "DELETE", f"{_BATCH}/j", {"preconditions": {"resourceVersion": "1"}}),
        _create("deployment", _APPS, _named("d", spec=_WORKLOAD)),
        Sent("apply a scale", "PATCH", f"{_APPS}/d/scale?fieldManager=m&force=true", None, APPLY, raw=_SCALE.encode()),
        *(
            Sent(
                f"apply a scale with {said}", "PATCH", f"{_APPS}/d/scale?fieldManager=m", None, APPLY, raw=raw.encode()
            )
            for said, raw in _NO_SCALES.items()
        ),
        Sent("who owns the replicas", "GET", f"{_APPS}/d", owned=True),
        _change("no replicas", f"{_APPS}/d/scale", {"spec": {"replicas": 0}}, MERGE),
        Sent("table of a scale", "GET", f"{_APPS}/d/scale", accept=TABLE),
        _create("priority class", _CLASSES, _named("changed", value=5)),
        _change("description of a class", f"{_CLASSES}/changed", {"description": "d"}, MERGE),
        Sent("delete a class of the system", "DELETE", f"{_CLASSES}/system-node-critical?dryRun=All"),
    )


def _of_rights() -> tuple[Case, ...]:
    user = {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}
    binding = _named("giver", roleRef={**_TO_ADMIN, "name": "giver"}, subjects=[user])
    roles, bindings = f"{_AUTH}/clusterroles", f"{_AUTH}/clusterrolebindings"
    first = {**_named("more"), "rules": _MORE}
    return (
        _create("giver", roles, _named("giver", rules=_CLUSTER_RULES)),
        _create("giver is ann", bindings, binding),
        _create("role with more than ann has", roles, first, headers=_AS_ANN, after_s=1.0),
        _create("role with what ann has", roles, _named("same", rules=_CLUSTER_RULES), headers=_AS_ANN),
        _create(
            "role that is aggregated",
            roles,
            _named("all", aggregationRule={"clusterRoleSelectors": [{}]}),
            headers=_AS_ANN,
        ),
        _create("bind to all", bindings, _named("all", roleRef=_TO_ADMIN), headers=_AS_ANN),
        _create("bind to none", bindings, _named("none", roleRef={**_TO_ADMIN, "name": "none"}), headers=_AS_ANN),
        Sent("a group without a user", "GET", _PODS, headers={"Impersonate-Group": "g"}),
        _create("account", f"{_WHERE}/serviceaccounts", _named("robot")),
        _create("token of another name", _TOKENS, _named("other", spec={})),
        _create("token for ever", _TOKENS, {"spec": {"expirationSeconds": 5_000_000_000}}),
        _create("token bound to nothing known", _TOKENS, {"spec": {"boundObjectRef": {"kind": "Other", "name": "x"}}}),
    )


def _of_changed_rights() -> tuple[Case, ...]:
    """After ``_of_rights``: ann may write roles and bindings, and escalate one role by its name."""
    roles, bindings = f"{_AUTH}/clusterroles", f"{_AUTH}/clusterrolebindings"
    by_name = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["escalate"]}
    writes = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "get", "patch"]}
    selected = {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}

    def by_ann(name: str, path: str, body: Any) -> Sent:
        return _change(name, path, body, MERGE, headers=_AS_ANN, after_s=0.2)

    return (
        _change("giver of more", f"{roles}/giver", {"rules": [writes, {**by_name, "resourceNames": ["named"]}]}, MERGE),
        _create("role with more", roles, _named("held", rules=_MORE)),
        by_ann("label of a role with more", f"{roles}/held", {"metadata": {"labels": {"a": "b"}}}),
        by_ann("finalizer of a role with more", f"{roles}/held", {"metadata": {"finalizers": ["a.b/c"]}}),
        _create("role that ann may escalate, new", roles, _named("named", rules=_MORE), headers=_AS_ANN),
        _create("role that ann may escalate", roles, _named("named", rules=[])),
        by_ann("escalate it", f"{roles}/named", {"rules": _MORE}),
        _create("more, and aggregated", roles, _named("both", rules=_MORE, aggregationRule=selected), headers=_AS_ANN),
        _create("aggregated role", roles, _named("gathers", aggregationRule=selected)),
        by_ann("aggregated no more", f"{roles}/gathers", {"aggregationRule": None, "rules": []}),
        _create("binding to more", bindings, _named("held", roleRef={**_TO_ADMIN, "name": "held"})),
        by_ann("label of a binding to more", f"{bindings}/held", {"metadata": {"labels": {"a": "b"}}}),
        by_ann("finalizer of a binding to more", f"{bindings}/held", {"metadata": {"finalizers": ["a.b/c"]}}),
    )


def _of_groups() -> tuple[Case, ...]:
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    return (
        Sent("version that a group has not", "GET", "/apis/apps/v9/deployments"),
        Sent("group that nobody serves", "GET", "/apis/none.example.com/v1/things"),
        _create("group of another server", services, _named("v1.other.example.com", spec=_SERVER)),
        Sent("ask the other server", "GET", "/apis/other.example.com/v1/things", until=503),
        Sent("no server any more", "DELETE", f"{services}/v1.other.example.com"),
        Sent("flow schemas", "GET", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", accept=TABLE),
        Sent("keys as JSON", "GET", "/openid/v1/jwks"),
        _create(
            "two families at most",
            "/apis/networking.k8s.io/v1/servicecidrs",
            _named("r", spec={"cidrs": ["x", "y", "z"]}),
        ),
    )


CASES: tuple[Case, ...] = (
    opened("changes"), *_of_pods(), *_of_storage(), *_of_workloads(), *_of_rights(), *_of_changed_rights(),
    *_of_groups(),
)  # fmt: skip
