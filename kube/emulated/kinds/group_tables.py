"""The cells of kinds that are rarely looked at (contract apiserver.md section 6; upstream's printers)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.tables.cells import (
    Printer,
    Row,
    labels_text,
    meta_age,
    none_if_empty,
    parameter_kind,
    selector_text,
    spec_of,
)
from mews.kube.emulated.core.tables.durations import age, human
from mews.kube.emulated.kinds.metric_cells import metric_texts

Part = Callable[[Object, float], Row]
"""The cells between the name and the age; of a few kinds all of them."""

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_SHOWN_ADDRESSES = 3
_LEGACY_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASSES = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _status(obj: Object) -> Mapping[str, Any]:
    return obj.get("status") or {}


def _field(*path: str, default: Any = "") -> Part:
    def part(obj: Object, _: float) -> Row:
        value: Any = obj
        for name in path:
            value = (value or {}).get(name)
        return [default if value is None else value]

    return part


def _count(name: str) -> Part:
    return lambda obj, _: [len(obj.get(name) or ())]


def _some(shown: Sequence[str], total: int, most: int) -> str:
    text = ",".join(shown[:most])
    return f"{text} + {total - most} more..." if total > most else none_if_empty(text)


def _endpoints(obj: Object, _: float) -> Row:
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [address["ip"] for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += [f"{_bracketed(ip)}:{port['port']}" for port in ports for ip in addresses] if ports else addresses
    return [_some(found, len(found), _SHOWN_ADDRESSES)]


def _bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def _quota(obj: Object, _: float) -> Row:
    hard, used = _status(obj).get("hard") or {}, _status(obj).get("used") or {}
    texts = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [name for name in texts if name.startswith("limits.")]
    requests = [name for name in texts if name not in limits]
    return [", ".join(texts[name] for name in names) for names in (requests, limits)]


def _modes(names: Sequence[str] | None) -> str:
    return ",".join(short for name, short in _MODES.items() if name in (names or ()))


def _phase(obj: Object) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else _status(obj).get("phase", "")


def _class(obj: Object) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(_LEGACY_CLASS) or spec_of(obj).get("storageClassName", ""))


def _claim(obj: Object, _: float) -> Row:
    spec, status, capacity, modes = spec_of(obj), _status(obj), "", ""
    if spec.get("volumeName"):
        modes = _modes(status.get("accessModes"))
        capacity = (status.get("capacity") or {}).get("storage", "0")
    attributes, mode = spec.get("volumeAttributesClassName", "<unset>"), spec.get("volumeMode", "<unset>")
    return [_phase(obj), spec.get("volumeName", ""), capacity, modes, _class(obj), attributes, mode]


def _volume(obj: Object, _: float) -> Row:
    spec, claim = spec_of(obj), spec_of(obj).get("claimRef")
    return [
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        spec.get("volumeAttributesClassName", "<unset>"),
        _status(obj).get("reason", ""),
        spec.get("volumeMode", "<unset>"),
    ]


def _layout(template: Mapping[str, Any]) -> list[str]:
    containers = (template.get("spec") or {}).get("containers") or ()
    return [",".join(container.get(field, "") for container in containers) for field in ("name", "image")]


def _pod_template(obj: Object, _: float) -> Row:
    template = obj.get("template") or {}
    return [*_layout(template), labels_text((template.get("metadata") or {}).get("labels"))]


def _numbers(obj: Object, *names: str) -> list[int]:
    return [_status(obj).get(name, 0) for name in names]


def _controller(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    counts = [spec.get("replicas", 1), *_numbers(obj, "replicas", "readyReplicas")]
    return [*counts, *_layout(spec.get("template") or {}), labels_text(spec.get("selector"))]


def _stateful_set(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    return [f"{_numbers(obj, 'readyReplicas')[0]}/{spec.get('replicas', 1)}", *_layout(spec.get("template") or {})]


_DAEMON_COUNTS = (
    "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable",
)  # fmt: skip


def _daemon_set(obj: Object, _: float) -> Row:
    template = spec_of(obj).get("template") or {}
    nodes = labels_text((template.get("spec") or {}).get("nodeSelector"))
    return [*_numbers(obj, *_DAEMON_COUNTS), nodes, *_layout(template), selector_text(spec_of(obj).get("selector"))]


def _revision(obj: Object, _: float) -> Row:
    owners = [owner for owner in obj["metadata"].get("ownerReferences") or () if owner.get("controller")]
    named = "<none>"
    for owner in owners:
        group = owner["apiVersion"].rpartition("/")[0]
        named = f"{owner['kind'].lower()}{f'.{group}' if group else ''}/{owner['name']}"
    return [named, obj.get("revision", 0)]


def _cron_job(obj: Object, now_s: float) -> Row:
    spec, status = spec_of(obj), _status(obj)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    last = status.get("lastScheduleTime")
    suspended = str(spec.get("suspend", "<unset>"))
    schedule = [spec.get("schedule", ""), spec.get("timeZone", "<none>"), suspended, len(status.get("active") or ())]
    since = age(last, now_s) if last else "<none>"
    return [*schedule, since, *_layout(job.get("template") or {}), selector_text(job.get("selector"))]


def _budget(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    wanted = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [*wanted, _status(obj).get("disruptionsAllowed", 0)]


def _binding(obj: Object, _: float) -> Row:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in subjects:
        place = f"{subject['namespace']}/" if subject.get("namespace") else ""
        by_kind.setdefault(subject["kind"], []).append(place + subject["name"])
    return [f"{role.get('kind', '')}/{role.get('name', '')}", *(", ".join(by_kind[kind]) for kind in list(by_kind)[:3])]


def _autoscaler(obj: Object, _: float) -> Row:
    spec, target = spec_of(obj), spec_of(obj).get("scaleTargetRef") or {}
    return [
        f"{target.get('kind', '')}/{target.get('name', '')}",
        metric_texts(spec.get("metrics") or (), _status(obj).get("currentMetrics") or ()),
        str(spec.get("minReplicas", "<unset>")),
        spec.get("maxReplicas", 0),
        _status(obj).get("currentReplicas", 0),
    ]


def _storage_class(obj: Object, now_s: float) -> Row:
    annotations = obj["metadata"].get("annotations") or {}
    default = " (default)" if any(annotations.get(name) == "true" for name in _DEFAULT_CLASSES) else ""
    policy, mode = obj.get("reclaimPolicy", "Delete"), obj.get("volumeBindingMode", "Immediate")
    name = obj["metadata"]["name"] + default
    expands = bool(obj.get("allowVolumeExpansion"))
    return [name, obj.get("provisioner", ""), policy, mode, expands, meta_age(obj, now_s)]


def _driver(obj: Object, _: float) -> Row:
    spec, tokens = spec_of(obj), spec_of(obj).get("tokenRequests")
    audiences = "<unset>" if tokens is None else ",".join(token.get("audience", "") for token in tokens)
    flags = [
        bool(spec.get("attachRequired", True)),
        *(bool(spec.get(n)) for n in ("podInfoOnMount", "storageCapacity")),
    ]
    modes = none_if_empty(",".join(spec.get("volumeLifecycleModes") or ()))
    return [*flags, audiences, bool(spec.get("requiresRepublish")), modes]


def _attachment(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    volume = (spec.get("source") or {}).get("persistentVolumeName", "")
    return [spec.get("attacher", ""), volume, spec.get("nodeName", ""), bool(_status(obj).get("attached"))]


def _ingress(obj: Object, _: float) -> Row:
    spec, rules = spec_of(obj), spec_of(obj).get("rules") or ()
    hosts: list[str] = []
    rest = len(rules)
    for rule in rules:
        if len(hosts) == _SHOWN_ADDRESSES:
            break
        rest -= 1
        hosts += [rule["host"]] if rule.get("host") else []
    # Upstream says how many rules there are beyond three, whether or not the first ones name a host.
    more = f" + {len(rules) - _SHOWN_ADDRESSES} more..." if rest else ""
    named = ",".join(hosts) + more if hosts else "*"
    balanced = (_status(obj).get("loadBalancer") or {}).get("ingress") or ()
    addresses = sorted({entry.get("ip") or entry.get("hostname", "") for entry in balanced})
    return [spec.get("ingressClassName", "<none>"), named, ",".join(addresses), "80, 443" if spec.get("tls") else "80"]


def _ingress_class(obj: Object, _: float) -> Row:
    parameters, text = spec_of(obj).get("parameters"), "<none>"
    if parameters:
        group = parameters.get("apiGroup")
        text = f"{parameters.get('kind', '')}{f'.{group}' if group else ''}/{parameters.get('name', '')}"
    return [spec_of(obj).get("controller", ""), text]


def _slice(obj: Object, _: float) -> Row:
    ports = [str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ()]
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    listed = [_some(texts, len(texts), _SHOWN_ADDRESSES).replace("<none>", "<unset>") for texts in (ports, addresses)]
    return [obj.get("addressType", ""), *listed]


def _resource_slice(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    return [spec.get("nodeName", ""), spec.get("driver", ""), (spec.get("pool") or {}).get("name", "")]


def _taint_rule(obj: Object, now_s: float) -> Row:
    taint = spec_of(obj).get("taint") or {}
    added = taint.get("timeAdded")
    words = [taint.get(name, "") for name in ("key", "value", "effect")]
    return [*words, age(added, now_s) if added else ""]


def _resource_claim(obj: Object, _: float) -> Row:
    status, going = _status(obj), bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if going else []
    if status.get("allocation"):
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    elif not going:
        states.append("pending")
    return [",".join(states)]


def _signing(obj: Object, _: float) -> Row:
    spec, status = spec_of(obj), _status(obj)
    types = {condition["type"] for condition in status.get("conditions") or ()}
    words = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    words += ["Failed"] if "Failed" in types else []
    words += ["Issued"] if status.get("certificate") else []
    lasts = human(spec["expirationSeconds"]) if spec.get("expirationSeconds") is not None else "<none>"
    return [spec.get("signerName") or "<none>", spec.get("username", ""), lasts, ",".join(words)]


def _level(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing") or {}
    shares = "<none>" if limited is None else limited.get("nominalConcurrencyShares", 0)
    return [
        spec.get("type", ""),
        shares,
        *(queuing.get(n, "<none>") for n in ("queues", "handSize", "queueLengthLimit")),
    ]


def _flow(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    conditions = _status(obj).get("conditions") or ()
    dangling = next((condition["status"] for condition in conditions if condition["type"] == "Dangling"), "?")
    level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    method = (spec.get("distinguisherMethod") or {}).get("type", "<none>")
    return [level, spec.get("matchingPrecedence", 0), method, dangling]


def _address(obj: Object, now_s: float) -> Row:
    """Its age has no column, as upstream."""
    parent = spec_of(obj).get("parentRef") or {}
    group, place = parent.get("group"), parent.get("namespace")
    what = f"{parent.get('resource', '')}{f'.{group}' if group else ''}".lower()
    named = f"{what}{f'/{place}' if place else ''}/{parent.get('name', '')}" if parent else "<none>"
    return [obj["metadata"]["name"], named, meta_age(obj, now_s)]


def _policy(obj: Object, _: float) -> Row:
    return [len(spec_of(obj).get("validations") or ()), parameter_kind(obj)]


def _policy_binding(obj: Object, _: float) -> Row:
    spec, parameters = spec_of(obj), spec_of(obj).get("paramRef")
    named = "<unset>"
    if parameters:
        place = parameters.get("namespace")
        named = f"{place}/{parameters.get('name', '')}" if place else parameters.get("name") or "*"
    return [spec.get("policyName", ""), named]


def _service_conditions(obj: Object, _: float) -> Row:
    service = spec_of(obj).get("service")
    named = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    available = next((c for c in _status(obj).get("conditions") or () if c["type"] == "Available"), None)
    text = "Unknown" if available is None else available["status"]
    if available is not None and available["status"] != "True":
        text = f"{text} ({available.get('reason', '')})"
    return [named, text]


_PARTS: Mapping[str, Part] = {
    "endpoints": _endpoints,
    "resourcequotas": _quota,
    "persistentvolumeclaims": _claim,
    "podtemplates": _pod_template,
    "replicationcontrollers": _controller,
    "persistentvolumes": _volume,
    "statefulsets.apps": _stateful_set,
    "daemonsets.apps": _daemon_set,
    "controllerrevisions.apps": _revision,
    "cronjobs.batch": _cron_job,
    "poddisruptionbudgets.policy": _budget,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "csinodes.storage.k8s.io": lambda obj, _: [len(spec_of(obj).get("drivers") or ())],
    "csidrivers.storage.k8s.io": _driver,
    "volumeattachments.storage.k8s.io": _attachment,
    "volumeattributesclasses.storage.k8s.io": _field("driverName"),
    "ingresses.networking.k8s.io": _ingress,
    "ingressclasses.networking.k8s.io": _ingress_class,
    "networkpolicies.networking.k8s.io": lambda obj, _: [selector_text(spec_of(obj).get("podSelector"))],
    "servicecidrs.networking.k8s.io": lambda obj, _: [",".join(spec_of(obj).get("cidrs") or ())],
    "endpointslices.discovery.k8s.io": _slice,
    "resourceslices.resource.k8s.io": _resource_slice,
    "devicetaintrules.resource.k8s.io": _taint_rule,
    "resourceclaims.resource.k8s.io": _resource_claim,
    "runtimeclasses.node.k8s.io": _field("handler"),
    "certificatesigningrequests.certificates.k8s.io": _signing,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _count("webhooks"),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _count("webhooks"),
    "validatingadmissionpolicies.admissionregistration.k8s.io": _policy,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _policy_binding,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _level,
    "flowschemas.flowcontrol.apiserver.k8s.io": _flow,
    "apiservices.apiregistration.k8s.io": _service_conditions,
}
"""Qualified plural -> the cells between the name and the age."""

GROUP_TABLES: Mapping[str, Printer] = {
    **{name: Printer(part, is_part=True) for name, part in _PARTS.items()},
    "storageclasses.storage.k8s.io": Printer(_storage_class),
    "ipaddresses.networking.k8s.io": Printer(_address),
}
"""By the qualified plural."""
