"""What is wrong with a pod spec, of a pod or of a template (pkg/apis/core/validation)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mews.kube.emulated.apiserver.store import names, refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

Spec = Mapping[str, Any]

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS = ("Equal", "Exists")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_TERMINATION_POLICIES = ("File", "FallbackToLogsOnError")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_FIELD_PATHS = re.compile(
    r"metadata\.(name|namespace|uid|labels|annotations)(\['[^']+'\])?|spec\.(nodeName|serviceAccountName|restartPolicy|"
    r"schedulerName)|status\.(phase|hostIP|hostIPs|podIP|podIPs)"
)
_ENV_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_PORT_NAME_TEXT = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
BETWEEN_PORTS = "must be between 1 and 65535, inclusive"
NOT_NEGATIVE = "must be greater than or equal to 0"


def at_least_zero(path: str, value: Any) -> Iterator[FieldError]:
    """A number, if given, may not be negative."""
    if isinstance(value, (int, float)) and value < 0:
        yield refusals.bad(path, value, NOT_NEGATIVE)


def label_faults(path: str, text: str) -> Iterator[FieldError]:
    """What is wrong with a text that must be an RFC 1123 label."""
    if len(text) > 63:
        yield refusals.bad(path, text, "must be no more than 63 characters")
    if not names.is_label(text):
        yield refusals.bad(path, text, names.LABEL_TEXT)


def not_found(path: str, value: str) -> FieldError:
    """A name that names nothing."""
    return FieldError(path, "FieldValueNotFound", refusals.shown(value))


def spec_faults(
    spec: Spec, path: str, containers: Callable[[Mapping[str, Any], str], list[FieldError]]
) -> list[FieldError]:
    """All that is wrong with a pod spec; ``containers`` judges a container's resources."""
    return list(_spec_faults(spec, path, containers))


def _spec_faults(
    spec: Spec, path: str, resources: Callable[[Mapping[str, Any], str], list[FieldError]]
) -> Iterator[FieldError]:
    yield from _volume_faults(spec.get("volumes") or (), f"{path}.volumes")
    volumes = [volume.get("name", "") for volume in spec.get("volumes") or ()]
    if not spec.get("containers"):
        yield refusals.required(f"{path}.containers")
    seen: set[str] = set()
    for place in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(place) or ()):
            here = f"{path}.{place}[{index}]"
            yield from _container_faults(container, here, volumes, resources)
            name = container.get("name", "")
            if name and name in seen and names.is_label(name):
                yield refusals.duplicate(f"{here}.name", name)
            seen.add(name)
            yield from _probe_faults(container, here)
    yield from _policy_faults(spec, path)
    yield from _placement_faults(spec, path)


def _policy_faults(spec: Spec, path: str) -> Iterator[FieldError]:
    restart = spec.get("restartPolicy", "")
    if not restart:
        yield refusals.required(f"{path}.restartPolicy")
    elif restart not in _RESTART_POLICIES:
        yield refusals.unsupported(f"{path}.restartPolicy", restart, _RESTART_POLICIES)
    dns = spec.get("dnsPolicy", "")
    if not dns:
        yield refusals.required(f"{path}.dnsPolicy")
    elif dns not in _DNS_POLICIES:
        yield refusals.unsupported(f"{path}.dnsPolicy", dns, _DNS_POLICIES)


def _placement_faults(spec: Spec, path: str) -> Iterator[FieldError]:
    # Long because it follows ValidatePodSpec field by field: upstream reports the faults in this order, and clients see
    # them joined in it. Each field is one or two branches; none depends on another.
    for key, value in (spec.get("nodeSelector") or {}).items():
        yield from names.label_pair_faults(f"{path}.nodeSelector", key, value)
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield refusals.required(f"{path}.imagePullSecrets[{index}].name")
    yield from _affinity_faults(spec.get("affinity") or {}, f"{path}.affinity")
    seen = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        here = f"{path}.schedulingGates[{index}]"
        yield from names.qualified_faults(here, gate.get("name", ""))
        if gate.get("name") in seen:
            yield refusals.duplicate(here, gate.get("name"))
        seen.add(gate.get("name"))
    yield from _spread_faults(spec.get("topologySpreadConstraints") or (), f"{path}.topologySpreadConstraints")
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            yield from names.subdomain_faults(f"{path}.{name}", spec[name])
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield refusals.bad(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from label_faults(f"{path}.{name}", spec[name])
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_faults(toleration, f"{path}.tolerations[{index}]")
    if spec.get("priorityClassName"):
        yield from names.subdomain_faults(f"{path}.priorityClassName", spec["priorityClassName"])
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION_POLICIES:
        yield refusals.unsupported(f"{path}.preemptionPolicy", policy, _PREEMPTION_POLICIES)


def _volume_faults(volumes: Sequence[Mapping[str, Any]], path: str) -> Iterator[FieldError]:
    seen = set()
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name", "")
        sources = [source for source in volume if source != "name"]
        for later in sources[1:]:
            yield refusals.forbidden_field(f"{here}.{later}", "may not specify more than 1 volume type")
        for source in sources[:1]:
            yield from _source_faults(source, volume[source] or {}, f"{here}.{source}")
        if not name:
            yield refusals.required(f"{here}.name")
        elif not names.is_label(name):
            yield from label_faults(f"{here}.name", name)
        elif name in seen:
            yield refusals.duplicate(f"{here}.name", name)
        seen.add(name)


_NAMED_SOURCES: Mapping[str, str] = {
    "configMap": "name",
    "secret": "secretName",
    "persistentVolumeClaim": "claimName",
    "hostPath": "path",
    "nfs": "server",
}


def _source_faults(source: str, content: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    needed = _NAMED_SOURCES.get(source)
    if needed is None:
        return
    value = content.get(needed, "")
    if not value:
        yield refusals.required(f"{path}.{needed}")
    elif needed == "path" and ".." in value.split("/"):
        yield refusals.bad(f"{path}.path", value, "must not contain '..'")


def _container_faults(
    container: Mapping[str, Any],
    path: str,
    volumes: Sequence[str],
    resources: Callable[[Mapping[str, Any], str], list[FieldError]],
) -> Iterator[FieldError]:
    name, image = container.get("name", ""), container.get("image", "")
    if not name:
        yield refusals.required(f"{path}.name")
    else:
        yield from label_faults(f"{path}.name", name)
    if not image:
        yield refusals.required(f"{path}.image")
    elif image != image.strip():
        yield refusals.bad(f"{path}.image", image, "must not have leading or trailing whitespace")
    termination = container.get("terminationMessagePolicy", "File")
    if termination not in _TERMINATION_POLICIES:
        yield refusals.unsupported(f"{path}.terminationMessagePolicy", termination, _TERMINATION_POLICIES[::-1])
    yield from _port_faults(container.get("ports") or (), f"{path}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        yield from _variable_faults(variable, f"{path}.env[{index}]")
    yield from _mount_faults(container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes)
    policy = container.get("imagePullPolicy", "")
    if not policy:
        yield refusals.required(f"{path}.imagePullPolicy")
    elif policy not in _PULL_POLICIES:
        yield refusals.unsupported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
    yield from resources(container.get("resources") or {}, f"{path}.resources")


def _port_faults(ports: Sequence[Mapping[str, Any]], path: str) -> Iterator[FieldError]:
    seen = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name", "")
        if name:
            wrong = list(port_name_faults(f"{here}.name", name))
            yield from wrong
            if not wrong and name in seen:
                yield refusals.duplicate(f"{here}.name", name)
            seen.add(name)
        number = port.get("containerPort", 0)
        if number == 0:
            yield refusals.required(f"{here}.containerPort")
        elif not 1 <= number <= 65535:
            yield refusals.bad(f"{here}.containerPort", number, BETWEEN_PORTS)
        if port.get("hostPort") and not 1 <= port["hostPort"] <= 65535:
            yield refusals.bad(f"{here}.hostPort", port["hostPort"], BETWEEN_PORTS)
        if port.get("protocol") not in _PROTOCOLS:
            yield refusals.unsupported(f"{here}.protocol", port.get("protocol", ""), _PROTOCOLS)


def port_name_faults(path: str, name: str) -> Iterator[FieldError]:
    """What is wrong with the name of a port (RFC 6335)."""
    if len(name) > 15:
        yield refusals.bad(path, name, "must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        yield refusals.bad(path, name, _PORT_NAME_TEXT)
    if not re.search("[a-z]", name):
        yield refusals.bad(path, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield refusals.bad(path, name, "must not contain consecutive hyphens")
    if name[0] == "-" or name[-1] == "-":
        yield refusals.bad(path, name, "must not begin or end with a hyphen")


def _variable_faults(variable: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    # The order of validateEnv: the name, then each source, and only then how many sources there are. A variable may be
    # wrong in several of these ways at once and is reported for each.
    name = variable.get("name", "")
    if not name:
        yield refusals.required(f"{path}.name")
    elif not re.fullmatch("[ -<>-~]+", name):
        yield refusals.bad(f"{path}.name", name, _ENV_TEXT)
    source = variable.get("valueFrom")
    if source is None:
        return
    here = f"{path}.valueFrom"
    reference = source.get("fieldRef")
    if reference is not None:
        place = reference.get("fieldPath", "")
        if not place:
            yield refusals.required(f"{here}.fieldRef.fieldPath")
        elif not _FIELD_PATHS.fullmatch(place):
            text = f"error converting fieldPath: field label not supported: {place}"
            yield refusals.bad(f"{here}.fieldRef.fieldPath", place, text)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if kind in source:
            for needed in ("name", "key"):
                if not source[kind].get(needed):
                    yield refusals.required(f"{here}.{kind}.{needed}")
    if not source:
        text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield refusals.bad(here, "", text)
    elif variable.get("value"):
        yield refusals.bad(here, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        yield refusals.bad(here, "", "may not have more than one field specified at a time")


def _mount_faults(mounts: Sequence[Mapping[str, Any]], path: str, volumes: Sequence[str]) -> Iterator[FieldError]:
    seen = set()
    for index, mount in enumerate(mounts):
        here, name, place = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield refusals.required(f"{here}.name")
        elif name not in volumes:
            yield not_found(f"{here}.name", name)
        if not place:
            yield refusals.required(f"{here}.mountPath")
        elif place in seen:
            yield refusals.bad(f"{here}.mountPath", place, "must be unique")
        seen.add(place)


def _probe_faults(container: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for name in _PROBES:
        probe = container.get(name)
        if probe is None:
            continue
        here = f"{path}.{name}"
        yield from _handler_faults(probe, here)
        for number in _PROBE_NUMBERS:
            yield from at_least_zero(f"{here}.{number}", probe.get(number))
        if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
            yield refusals.bad(f"{here}.successThreshold", probe["successThreshold"], "must be 1")


def _handler_faults(probe: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    given = [handler for handler in _HANDLERS if handler in probe]
    if not given:
        yield refusals.required(path, "must specify a handler type")
    for index, handler in enumerate(given):
        here, content = f"{path}.{handler}", probe[handler]
        if index:
            yield refusals.forbidden_field(here, "may not specify more than 1 handler type")
        elif handler == "exec" and not content.get("command"):
            yield refusals.required(f"{here}.command")
        elif handler != "exec":
            port = content.get("port", 0)
            if isinstance(port, int) and not 1 <= port <= 65535:
                yield refusals.bad(f"{here}.port", port, BETWEEN_PORTS)


def _toleration_faults(toleration: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key:
        yield from names.qualified_faults(f"{path}.key", key)
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield refusals.bad(f"{path}.operator", operator, text)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield refusals.bad(f"{path}.effect", effect, text)
    if operator in ("Equal", ""):
        yield from names.label_value_faults(f"{path}.operator", value)
    elif operator == "Exists":
        if value:
            yield refusals.bad(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield refusals.unsupported(f"{path}.operator", operator, _TOLERATION_OPERATORS)
    if effect and effect not in _EFFECTS:
        yield refusals.unsupported(f"{path}.effect", effect, _EFFECTS)


def taint_faults(taints: Sequence[Mapping[str, Any]], path: str) -> Iterator[FieldError]:
    """What is wrong with a node's taints."""
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        yield from names.qualified_faults(f"{here}.key", taint.get("key", ""))
        yield from names.label_value_faults(f"{here}.value", taint.get("value", ""))
        effect = taint.get("effect", "")
        if not effect:
            yield refusals.required(f"{here}.effect")
        elif effect not in _EFFECTS:
            yield refusals.unsupported(f"{here}.effect", effect, _EFFECTS)


def _spread_faults(constraints: Sequence[Mapping[str, Any]], path: str) -> Iterator[FieldError]:
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            yield refusals.bad(f"{here}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero")
        if not constraint.get("topologyKey"):
            yield refusals.required(f"{here}.topologyKey", "can not be empty")
        unsatisfiable = constraint.get("whenUnsatisfiable", "")
        if unsatisfiable not in _UNSATISFIABLE:
            yield refusals.unsupported(f"{here}.whenUnsatisfiable", unsatisfiable, _UNSATISFIABLE)


_REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED_TERMS = "preferredDuringSchedulingIgnoredDuringExecution"


def _affinity_faults(affinity: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    required = (affinity.get("nodeAffinity") or {}).get(_REQUIRED_TERMS)
    if required is not None:
        here = f"{path}.nodeAffinity.{_REQUIRED_TERMS}.nodeSelectorTerms"
        if not required.get("nodeSelectorTerms"):
            yield refusals.required(here, "must have at least one node selector term")
        for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
            for number, expression in enumerate(term.get("matchExpressions") or ()):
                yield from _requirement_faults(expression, f"{here}[{index}].matchExpressions[{number}]")
    for kind in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate((affinity.get(kind) or {}).get(_REQUIRED_TERMS) or ()):
            here = f"{path}.{kind}.{_REQUIRED_TERMS}[{index}]"
            yield from _pod_term_faults(term, here)
        for index, weighed in enumerate((affinity.get(kind) or {}).get(_PREFERRED_TERMS) or ()):
            here = f"{path}.{kind}.{_PREFERRED_TERMS}[{index}]"
            if not 1 <= weighed.get("weight", 0) <= 100:
                yield refusals.bad(f"{here}.weight", weighed.get("weight", 0), "must be in the range 1-100")
            yield from _pod_term_faults(weighed.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")


def _pod_term_faults(term: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """What is wrong with a term of (anti-)affinity to pods (upstream validatePodAffinityTerm)."""
    for name in ("labelSelector", "namespaceSelector"):
        yield from selector_faults(term.get(name) or {}, f"{path}.{name}")
    if not term.get("topologyKey"):
        yield refusals.required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from names.qualified_faults(f"{path}.topologyKey", term["topologyKey"])


def _requirement_faults(expression: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            yield refusals.required(f"{path}.values", text)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield refusals.forbidden_field(f"{path}.values", text)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield refusals.required(f"{path}.values", text)
    else:
        yield refusals.bad(f"{path}.operator", operator, "not a valid selector operator")
    yield from names.qualified_faults(f"{path}.key", expression.get("key", ""))


def selector_faults(selector: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """What is wrong with a label selector."""
    for key, value in (selector.get("matchLabels") or {}).items():
        yield from names.label_pair_faults(f"{path}.matchLabels", key, value)
    yield from expression_faults(selector, path)


def expression_faults(selector: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """What is wrong with the expressions of a label selector; with such it selects nothing."""
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values") or []
        if operator in ("In", "NotIn") and not values:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            yield refusals.required(f"{here}.values", text)
        elif operator in ("Exists", "DoesNotExist") and values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield refusals.forbidden_field(f"{here}.values", text)
        elif operator not in _LABEL_OPERATORS:
            yield refusals.bad(f"{here}.operator", operator, "not a valid selector operator")
        yield from names.qualified_faults(f"{here}.key", expression.get("key", ""))
