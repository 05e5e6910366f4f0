"""What is wrong with a pod spec, of a pod or of a template (pkg/apis/core/validation, ValidatePodSpec)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.affinity_errors import affinity_errors, match_key_errors, selector_errors
from mews.kube.emulated.core.checks.common import items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.container_errors import (
    BETWEEN_PORTS,
    container_errors,
    ephemeral_container_errors,
    host_port_errors,
    port_name_errors,
)
from mews.kube.emulated.kinds.pods.pod_resources import pod_resource_errors
from mews.kube.emulated.kinds.pods.pod_volume_errors import POD_SOURCES
from mews.kube.emulated.kinds.pods.resource_errors import overhead_errors
from mews.kube.emulated.kinds.pods.restart_errors import file_volume_errors
from mews.kube.emulated.kinds.pods.security_errors import (
    host_process_errors,
    linux_errors,
    pod_security_errors,
    windows_pod_errors,
)
from mews.kube.emulated.kinds.priority_classes import preemption_errors
from mews.kube.emulated.kinds.volumes.volume_errors import pod_source_errors

Spec = Mapping[str, Any]

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS = ("Equal", "Exists")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCH = 3, 32, 2048
_UNDERSCORED = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"
_UNDERSCORED_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_UNDERSCORED}')"
)
NOT_NEGATIVE = "must be greater than or equal to 0"

__all__ = ["BETWEEN_PORTS", "at_least_zero", "port_name_errors", "spec_errors", "taint_errors"]


def at_least_zero(path: str, value: Any) -> Iterator[FieldError]:
    """Yield a number, if given, may not be negative."""
    if isinstance(value, (int, float)) and value < 0:
        yield refusals.bad(path, value, NOT_NEGATIVE)


def spec_errors(spec: Spec, path: str) -> list[FieldError]:
    """Return all that is wrong with a pod spec."""
    return list(_spec_errors(spec, path))


def _spec_errors(spec: Spec, path: str) -> Iterator[FieldError]:
    wrong, volumes = _volume_errors(items(spec, "volumes"), f"{path}.volumes")
    yield from wrong
    yield from _claim_errors(items(spec, "resourceClaims"), f"{path}.resourceClaims")
    yield from _containers_errors(spec, path, volumes)
    if spec.get("resources") is not None:
        yield from pod_resource_errors(spec, f"{path}.resources")
    yield from _host_network_errors(spec, path)
    yield from _policy_errors(spec, path)
    for key, value in (spec.get("nodeSelector") or {}).items():
        yield from names.label_pair_errors(f"{path}.nodeSelector", key, value)
    yield from pod_security_errors(spec, path)
    yield from affinity_errors(spec.get("affinity") or {}, f"{path}.affinity")
    yield from _dns_errors(spec, f"{path}.dnsConfig")
    yield from _gate_errors(spec, path)
    yield from _spread_errors(items(spec, "topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    yield from host_process_errors(spec, path)
    yield from _host_user_errors(spec, path)
    yield from _name_errors(spec, path)
    yield from _late_errors(spec, path)


def _volume_errors(volumes: Sequence[Spec], path: str) -> tuple[list[FieldError], dict[str, Spec]]:
    """Return what is wrong with volumes, and those that can be mounted."""
    found: list[FieldError] = []
    good: dict[str, Spec] = {}
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name", "")
        wrong = [*pod_source_errors(volume, here, POD_SOURCES)]
        wrong += common.label(f"{here}.name", name) if name else [refusals.required(f"{here}.name")]
        if name in good:
            wrong.append(refusals.duplicate(f"{here}.name", name))
        if not wrong:
            good[name] = volume
        found += wrong
    return found, good


def _claim_errors(claims: Sequence[Spec], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            yield refusals.required(f"{here}.name")
        elif name in seen:
            yield refusals.duplicate(f"{here}.name", name)
        else:
            yield from common.label(f"{here}.name", name)
            seen.add(name)
        given = [claim.get(field) for field in ("resourceClaimName", "resourceClaimTemplateName")]
        text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        if given[0] is not None and given[1] is not None:
            yield refusals.bad(here, _claim_shown(claim), text)
        if given == [None, None]:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield refusals.bad(here, _claim_shown(claim), text)
        for field in ("resourceClaimName", "resourceClaimTemplateName"):
            if claim.get(field) is not None:
                yield from names.subdomain_errors(f"{here}.{field}", claim[field])


def _claim_shown(claim: Spec) -> dict[str, Any]:
    fields = ("name", "resourceClaimName", "resourceClaimTemplateName")
    return {f"{field[0].upper()}{field[1:]}": claim.get(field, "" if field == "name" else None) for field in fields}


def _containers_errors(spec: Spec, path: str, volumes: dict[str, Spec]) -> Iterator[FieldError]:
    seen: set[str] = set()
    if not items(spec, "containers"):
        yield refusals.required(f"{path}.containers")
    for place in ("containers", "initContainers"):
        for index, container in enumerate(items(spec, place)):
            here, name = f"{path}.{place}[{index}]", container.get("name", "")
            initial = place == "initContainers"
            yield from container_errors(container, here, spec, volumes, initial=initial, names_before=seen)
            if name or not initial:
                seen.add(name)
        yield from file_volume_errors(items(spec, place), f"{path}.{place}", volumes)
        if place == "containers":
            yield from host_port_errors(spec, f"{path}.containers")
    others = frozenset(seen)
    yield from file_volume_errors(items(spec, "ephemeralContainers"), f"{path}.ephemeralContainers", volumes)
    for index, container in enumerate(items(spec, "ephemeralContainers")):
        here = f"{path}.ephemeralContainers[{index}]"
        yield from ephemeral_container_errors(container, here, spec, volumes, names_before=seen, others=others)
        seen.add(container.get("name", ""))


def _host_network_errors(spec: Spec, path: str) -> Iterator[FieldError]:
    if not spec.get("hostNetwork"):
        return
    for place in ("containers", "initContainers"):
        for number, container in enumerate(items(spec, place)):
            for index, port in enumerate(items(container, "ports")):
                if port.get("hostPort") != port.get("containerPort"):
                    here = f"{path}.{place}[{number}].ports[{index}].containerPort"
                    text = "must match `hostPort` when `hostNetwork` is true"
                    yield refusals.bad(here, port.get("containerPort", 0), text)


def _policy_errors(spec: Spec, path: str) -> Iterator[FieldError]:
    for name, allowed in (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES)):
        given = spec.get(name, "")
        yield from common.option(f"{path}.{name}", given, allowed) if given else [refusals.required(f"{path}.{name}")]


# Complex: upstream's order of errors, which clients see.
def _dns_errors(spec: Spec, path: str) -> Iterator[FieldError]:  # noqa: C901
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield refusals.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not items(config, "nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield refusals.required(f"{path}.nameservers", text)
            return
    if config is None:
        return
    servers, searches = items(config, "nameservers"), items(config, "searches")
    if len(servers) > _MOST_SERVERS:
        yield refusals.bad(f"{path}.nameservers", [*servers], f"must not have more than {_MOST_SERVERS} nameservers")
    for index, server in enumerate(servers):
        yield from addresses.address(f"{path}.nameservers[{index}]", server)
    if len(searches) > _MOST_SEARCHES:
        yield refusals.bad(f"{path}.searches", [*searches], f"must not have more than {_MOST_SEARCHES} search paths")
    if len(" ".join(searches)) > _LONGEST_SEARCH:
        text = f"must not have more than {_LONGEST_SEARCH} characters (including spaces) in the search list"
        yield refusals.bad(f"{path}.searches", [*searches], text)
    for index, search in enumerate(searches):
        if search != ".":
            yield from _search_errors(search.removesuffix("."), f"{path}.searches[{index}]")
    for index, option in enumerate(items(config, "options")):
        if not option.get("name"):
            yield refusals.required(f"{path}.options[{index}]", "must not be empty")


def _search_errors(search: str, path: str) -> Iterator[FieldError]:
    if len(search) > 253:
        yield refusals.bad(path, search, "must be no more than 253 characters")
    if not re.fullmatch(_UNDERSCORED, search):
        yield refusals.bad(path, search, _UNDERSCORED_TEXT)


def _gate_errors(spec: Spec, path: str) -> Iterator[FieldError]:
    for index, gate in enumerate(items(spec, "readinessGates")):
        here = f"{path}.readinessGates[{index}].conditionType"
        yield from names.qualified_errors(here, gate.get("conditionType", ""))
    seen = set()
    for index, gate in enumerate(items(spec, "schedulingGates")):
        here = f"{path}.schedulingGates[{index}]"
        yield from names.qualified_errors(here, gate.get("name", ""))
        if gate.get("name") in seen:
            yield refusals.duplicate(here, gate.get("name"))
        seen.add(gate.get("name"))


def _host_user_errors(spec: Spec, path: str) -> Iterator[FieldError]:
    if spec.get("hostUsers") is not False:
        return
    for name, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name):
            yield refusals.forbidden_field(f"{path}.{shown}", "when `hostUsers` is false")
    for place in ("initContainers", "containers"):
        for index, container in enumerate(items(spec, place)):
            if items(container, "volumeDevices"):
                yield refusals.forbidden_field(f"{path}.{place}[{index}].volumeDevices", "when `hostUsers` is false")


def _name_errors(spec: Spec, path: str) -> Iterator[FieldError]:
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            yield from names.subdomain_errors(f"{path}.{name}", spec[name])
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield refusals.bad(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from common.label(f"{path}.{name}", spec[name])


# Complex: upstream's order of errors, which clients see.
def _late_errors(spec: Spec, path: str) -> Iterator[FieldError]:  # noqa: C901
    for index, toleration in enumerate(items(spec, "tolerations")):
        yield from toleration_errors(toleration, f"{path}.tolerations[{index}]")
    for index, alias in enumerate(items(spec, "hostAliases")):
        here = f"{path}.hostAliases[{index}]"
        yield from addresses.address(f"{here}.ip", alias.get("ip", ""))
        for number, name in enumerate(items(alias, "hostnames")):
            yield from names.subdomain_errors(f"{here}.hostnames[{number}]", name)
    if spec.get("priorityClassName"):
        yield from names.subdomain_errors(f"{path}.priorityClassName", spec["priorityClassName"])
    if spec.get("runtimeClassName") is not None:
        yield from names.subdomain_errors(f"{path}.runtimeClassName", spec["runtimeClassName"])
    yield from preemption_errors(spec.get("preemptionPolicy"), f"{path}.preemptionPolicy")
    if spec.get("overhead"):
        yield from overhead_errors(spec["overhead"], f"{path}.overhead")
    system = spec.get("os")
    if system is not None and not system.get("name"):
        yield refusals.required(f"{path}.os.name")
    elif system is not None:
        yield from common.option(f"{path}.os", system["name"], ("linux", "windows"))
        if system["name"] == "linux":
            yield from linux_errors(spec, path)
        elif system["name"] == "windows":
            yield from windows_pod_errors(spec, path)


def toleration_errors(toleration: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a toleration."""
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key:
        yield from names.qualified_errors(f"{path}.key", key)
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield refusals.bad(f"{path}.operator", operator, text)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield refusals.bad(f"{path}.effect", effect, text)
    if operator in ("Equal", ""):
        if texts := names.label_value_texts(value):
            yield refusals.bad(f"{path}.operator", value, ";".join(texts))
    elif operator == "Exists":
        if value:
            yield refusals.bad(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield refusals.unsupported(f"{path}.operator", operator, _TOLERATION_OPERATORS)
    if effect and effect not in _EFFECTS:
        yield refusals.unsupported(f"{path}.effect", effect, _EFFECTS)


def taint_errors(taints: Sequence[Mapping[str, Any]], path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a node's taints."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here, effect = f"{path}[{index}]", taint.get("effect", "")
        yield from names.qualified_errors(f"{here}.key", taint.get("key", ""))
        if texts := names.label_value_texts(taint.get("value", "")):
            yield refusals.bad(f"{here}.value", taint["value"], ";".join(texts))
        if not effect:
            yield refusals.required(f"{here}.effect")
        elif effect not in _EFFECTS:
            yield refusals.unsupported(f"{here}.effect", effect, _EFFECTS)
        if (effect, taint.get("key", "")) in seen:
            shown = {"Key": taint.get("key", ""), "Value": taint.get("value", ""), "Effect": effect}
            shown["TimeAdded"] = taint.get("timeAdded")
            text = f"{refusals.shown(shown)}: taints must be unique by key and effect pair"
            yield FieldError(here, "FieldValueDuplicate", text)
        seen.add((effect, taint.get("key", "")))


def _spread_errors(constraints: Sequence[Spec], path: str) -> Iterator[FieldError]:
    for index, constraint in enumerate(constraints):
        here, skew = f"{path}[{index}]", constraint.get("maxSkew", 0)
        way, key = constraint.get("whenUnsatisfiable", ""), constraint.get("topologyKey", "")
        if skew <= 0:
            yield refusals.bad(f"{here}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield refusals.required(f"{here}.topologyKey", "can not be empty")
        yield from common.option(f"{here}.whenUnsatisfiable", way, _UNSATISFIABLE)
        for later in constraints[index + 1 :]:
            if (later.get("topologyKey", ""), later.get("whenUnsatisfiable", "")) == (key, way):
                shown = f"{{{key}, {way}}}"
                yield refusals.duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", shown)
        least = constraint.get("minDomains")
        if least is not None and least <= 0:
            yield refusals.bad(f"{here}.minDomains", least, "must be greater than zero")
        if least is not None and way != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {way}"
            yield refusals.bad(f"{here}.minDomains", least, text)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None:
                yield from common.option(f"{here}.{name}", constraint[name], ("Honor", "Ignore"))
        yield from match_key_errors(constraint, here)
        yield from selector_errors(constraint.get("labelSelector") or {}, f"{here}.labelSelector")
