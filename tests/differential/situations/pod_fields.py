"""Pods that set one field each: every field of the published types that a pod's spec reaches, with a plain value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.emulated.types.gotypes import Field, struct
from mews.kube.emulated.types.ignored_fields import POD
from tests.differential.situations.playing import Situation

_ZEROS: Mapping[str, Any] = {"string": "a", "bool": True, "int32": 1, "int64": 1, "quantity": "1", "intorstring": 80}
_TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
_SPREAD = {**_TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
_BODIES: Mapping[str, Mapping[str, Any]] = {
    POD: {"containers": [{"name": "c", "image": "app"}]},
    "core/v1.Container": {"name": "c", "image": "app"},
    "core/v1.Volume": {"name": "v"},
    "core/v1.VolumeMount": {"name": "v", "mountPath": "/v"},
    "core/v1.Probe": {"tcpSocket": {"port": 80}},
    "core/v1.LifecycleHandler": {"exec": {"command": ["true"]}},
    "core/v1.ExecAction": {"command": ["true"]},
    "core/v1.HTTPGetAction": {"port": 80},
    "core/v1.TCPSocketAction": {"port": 80},
    "core/v1.HTTPHeader": {"name": "a", "value": "b"},
    "core/v1.ConfigMapVolumeSource": {"name": "m"},
    "core/v1.SecretVolumeSource": {"secretName": "m"},
    "core/v1.ConfigMapProjection": {"name": "m"},
    "core/v1.SecretProjection": {"name": "m"},
    "core/v1.ConfigMapEnvSource": {"name": "m"},
    "core/v1.SecretEnvSource": {"name": "m"},
    "core/v1.ConfigMapKeySelector": {"name": "m", "key": "k"},
    "core/v1.SecretKeySelector": {"name": "m", "key": "k"},
    "core/v1.EnvFromSource": {"configMapRef": {"name": "m", "optional": True}},
    "core/v1.EnvVarSource": {"fieldRef": {"fieldPath": "metadata.name"}},
    "core/v1.DownwardAPIVolumeFile": {"path": "a", "fieldRef": {"fieldPath": "metadata.name"}},
    "core/v1.ObjectFieldSelector": {"fieldPath": "metadata.name"},
    "core/v1.ResourceFieldSelector": {"resource": "limits.cpu", "containerName": "c"},
    "core/v1.PodDNSConfigOption": {"name": "ndots"},
    "core/v1.PodDNSConfig": {"nameservers": ["10.0.0.2"]},
    "core/v1.ContainerResizePolicy": {"resourceName": "cpu", "restartPolicy": "NotRequired"},
    "core/v1.AppArmorProfile": {"type": "Localhost", "localhostProfile": "a"},
    "core/v1.SeccompProfile": {"type": "Localhost", "localhostProfile": "a"},
    "core/v1.HostAlias": {"ip": "10.0.0.1", "hostnames": ["a.example.com"]},
    "core/v1.VolumeDevice": {"name": "v", "devicePath": "/dev/x"},
    "core/v1.AzureDiskVolumeSource": {"diskName": "a", "diskURI": "https://a.blob.core.windows.net/b/c.vhd"},
    "core/v1.ISCSIVolumeSource": {"targetPortal": "10.0.0.3", "iqn": "iqn.2001-04.com.example:a", "lun": 0},
    "core/v1.NFSVolumeSource": {"server": "10.0.0.3", "path": "/a"},
    "core/v1.FCVolumeSource": {"wwids": ["a"]},
    "core/v1.FlockerVolumeSource": {"datasetName": "a"},
    "core/v1.QuobyteVolumeSource": {"registry": "10.0.0.3:1", "volume": "a"},
    "core/v1.ScaleIOVolumeSource": {"gateway": "a", "system": "a", "volumeName": "a", "secretRef": {"name": "m"}},
    "core/v1.StorageOSVolumeSource": {"volumeName": "a", "volumeNamespace": "a"},
    "core/v1.LocalObjectReference": {"name": "m"},
    "core/v1.TypedLocalObjectReference": {"kind": "PersistentVolumeClaim", "name": "a"},
    "core/v1.TypedObjectReference": {"kind": "PersistentVolumeClaim", "name": "a"},
    "core/v1.VolumeResourceRequirements": {"requests": {"storage": "1Gi"}},
    "core/v1.ServiceAccountTokenProjection": {"path": "t"},
    "core/v1.PodAffinityTerm": _TERM,
    "core/v1.TopologySpreadConstraint": _SPREAD,
    "core/v1.WeightedPodAffinityTerm": {"weight": 1, "podAffinityTerm": _TERM},
    "core/v1.NodeSelectorRequirement": {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
    "meta/v1.LabelSelectorRequirement": {"key": "a", "operator": "Exists"},
    "core/v1.Toleration": {"key": "a", "operator": "Equal", "effect": "NoExecute"},
    "core/v1.PodResourceClaim": {"name": "r", "resourceClaimName": "r"},
    "core/v1.EnvVar": {"name": "A"},
    "core/v1.PersistentVolumeClaimSpec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
    "core/v1.PersistentVolumeClaimTemplate": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
}
"""Struct -> what its other fields need beside them."""

_VALUES: Mapping[tuple[str, str], Any] = {
    (POD, "nodeName"): "host-1",
    (POD, "initContainers"): [{"name": "i", "image": "ends"}],
    (POD, "ephemeralContainers"): [{"name": "e", "image": "app"}],
    ("core/v1.PodOS", "name"): "linux",
    ("core/v1.PodDNSConfig", "nameservers"): ["10.0.0.2"],
    ("core/v1.HostAlias", "ip"): "10.0.0.1",
    ("core/v1.HostAlias", "hostnames"): ["a.example.com"],
    ("core/v1.HTTPGetAction", "port"): 80,
    ("core/v1.TCPSocketAction", "port"): 80,
    ("core/v1.ContainerResizePolicy", "resourceName"): "cpu",
    ("core/v1.ContainerResizePolicy", "restartPolicy"): "RestartContainer",
    ("core/v1.SecurityContext", "procMount"): "Default",
    ("core/v1.PodSecurityContext", "seLinuxChangePolicy"): "Recursive",
    ("core/v1.ObjectFieldSelector", "fieldPath"): "metadata.namespace",
    ("core/v1.ObjectFieldSelector", "apiVersion"): "v1",
    ("core/v1.ResourceFieldSelector", "resource"): "requests.cpu",
    ("core/v1.ResourceFieldSelector", "containerName"): "c",
    ("core/v1.ResourceRequirements", "limits"): {"cpu": "1"},
    ("core/v1.ResourceRequirements", "requests"): {"cpu": "1"},
    ("core/v1.VolumeResourceRequirements", "requests"): {"storage": "2Gi"},
    ("core/v1.VolumeResourceRequirements", "limits"): {"storage": "2Gi"},
    ("core/v1.VolumeMount", "name"): "v",
    ("core/v1.VolumeMount", "recursiveReadOnly"): "Disabled",
    ("core/v1.Volume", "name"): "v",
    ("core/v1.ServiceAccountTokenProjection", "expirationSeconds"): 3600,
    ("core/v1.AppArmorProfile", "type"): "Localhost",
    ("core/v1.SeccompProfile", "type"): "Localhost",
    ("core/v1.NodeSelectorTerm", "matchFields"): [{"key": "metadata.name", "operator": "In", "values": ["host-2"]}],
    ("core/v1.NFSVolumeSource", "path"): "/b",
    (POD, "schedulerName"): "default-scheduler",
    (POD, "priorityClassName"): "system-node-critical",
    (POD, "preemptionPolicy"): "PreemptLowerPriority",
    (POD, "restartPolicy"): "Never",
    (POD, "dnsPolicy"): "Default",
    (POD, "serviceAccountName"): "default",
    (POD, "serviceAccount"): "default",
    (POD, "nodeSelector"): {"kubernetes.io/os": "linux"},
    (POD, "overhead"): {"cpu": "1"},
    (POD, "priority"): 0,
    (POD, "os"): {"name": "linux"},
    (POD, "schedulingGates"): [{"name": "example.com/gate"}],
    (POD, "readinessGates"): [{"conditionType": "example.com/ready"}],
    (POD, "hostAliases"): [{"ip": "10.0.0.1", "hostnames": ["a.example.com"]}],
    (POD, "topologySpreadConstraints"): [_SPREAD],
    ("core/v1.Container", "resources"): {"requests": {"cpu": "100m"}, "limits": {"example.com/none": "1"}},
    ("core/v1.Container", "imagePullPolicy"): "Never",
    ("core/v1.Container", "restartPolicy"): "Always",
    ("core/v1.VolumeMount", "mountPropagation"): "None",
    ("core/v1.PodAffinityTerm", "namespaces"): ["default"],
    ("core/v1.PodAffinityTerm", "topologyKey"): "none",
    ("core/v1.TopologySpreadConstraint", "topologyKey"): "none",
    ("core/v1.NodeSelectorRequirement", "values"): ["windows"],
    ("core/v1.HostPathVolumeSource", "path"): "/tmp",
}
_ONE_OF: Mapping[str, tuple[str, ...]] = {
    "core/v1.Probe": ("exec", "grpc", "httpGet", "tcpSocket"),
    "core/v1.LifecycleHandler": ("exec", "httpGet", "sleep", "tcpSocket"),
    "core/v1.EnvFromSource": ("configMapRef", "secretRef"),
    "core/v1.EnvVarSource": ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"),
    "core/v1.DownwardAPIVolumeFile": ("fieldRef", "resourceFieldRef"),
    "core/v1.PodResourceClaim": ("resourceClaimName", "resourceClaimTemplateName"),
    "core/v1.FCVolumeSource": ("wwids", "targetWWNs"),
    "core/v1.FlockerVolumeSource": ("datasetName", "datasetUUID"),
}
"""Struct -> fields of which one alone may be set."""

_NOT_GONE_INTO = ("meta/v1.ObjectMeta", "meta/v1.LabelSelector", "core/v1.EphemeralContainer")
"""What is a kind of its own, and what no new pod may have: the refusal is the same for each field below."""
_DEEP = 7
_DRIVERS = frozenset(
    f"{name}VolumeSource"
    for name in (
        *("AWSElasticBlockStore", "AzureDisk", "AzureFile", "CephFS", "Cinder", "CSI", "FC", "Flex", "Flocker"),
        *("GCEPersistentDisk", "GitRepo", "Glusterfs", "ISCSI", "NFS", "PhotonPersistentDisk", "Portworx", "Quobyte"),
        *("RBD", "ScaleIO", "StorageOS"),
    )
) | {"VsphereVirtualDiskVolumeSource", "FlexVolumeSource", "PortworxVolumeSource"}
"""Volumes of drivers that no emulated node has: their own fields are the driver's, and some of them end the real
kube-controller-manager."""


def situations() -> Iterator[Situation]:
    """One for each field of each struct, where it is reached first."""
    seen: set[tuple[str, str]] = set()
    left: list[tuple[str, tuple[tuple[str, str], ...]]] = [(POD, ())]
    while left:
        ref, way = left.pop(0)
        for name, field in struct(ref).fields.items():
            below = _element(field)
            if (ref, name) in seen:
                continue
            seen.add((ref, name))
            here = (*way, (ref, name))
            yield _of(here)
            is_ours = below.startswith("core/") and below.partition(".")[2] not in _DRIVERS
            if is_ours and below not in _NOT_GONE_INTO and len(here) < _DEEP:
                left.append((below, here))


def _element(field: Field) -> str:
    return field.type.removeprefix("[]").removeprefix("{}")


def _of(way: tuple[tuple[str, str], ...]) -> Situation:
    path = ".".join(name for _, name in way)
    number = sum(ord(letter) * (index + 7) for index, letter in enumerate(path)) % 9973
    space = f"f{number}-{way[-1][1].lower()}"[:60]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": _body(way)}
    return Situation(space, (pod,), title=f"spec.{path}")


def _body(way: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    (ref, name), rest = way[0], way[1:]
    field = struct(ref).fields[name]
    alone = _ONE_OF.get(ref, ())
    beside = {each: given for each, given in _BODIES.get(ref, {}).items() if name not in alone or each not in alone}
    body = {**{each: _plain(ref, f) for each, f in struct(ref).fields.items() if f.required}, **beside}
    value = _body(rest) if rest else _plain(ref, field)
    if rest and field.type.startswith("[]"):
        value = [value]
    body[name] = value
    if ref == POD:
        _let_mount(body, name, rest)
    return body


def _let_mount(spec: dict[str, Any], name: str, rest: tuple[tuple[str, str], ...]) -> None:
    """Volumes for mounts, mounts for volumes, and another name for an init container."""
    below = rest[0][1] if rest else ""
    if name == "volumes":
        spec["containers"] = [{"name": "c", "image": "app", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]
    elif below == "volumeMounts":
        spec["volumes"] = [{"name": "v", "emptyDir": {}}]
    elif below == "volumeDevices":
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]
    elif name == "initContainers" and rest:
        spec[name][0] |= {"name": "i"}


def _plain(ref: str, field: Field) -> Any:
    if (ref, field.name) in _VALUES:
        return _VALUES[ref, field.name]
    below = _element(field)
    if field.enum:
        value: Any = field.enum[-1]
    elif below in _ZEROS:
        value = _ZEROS[below]
    elif below.startswith("core/"):
        value = {name: _plain(below, each) for name, each in struct(below).fields.items() if each.required}
        value |= _BODIES.get(below, {})
    else:
        value = {}
    if field.type.startswith("[]"):
        return [value]
    return {"a": value} if field.type.startswith("{}") else value
