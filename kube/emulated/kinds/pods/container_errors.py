"""What is wrong with a container of a pod (pkg/apis/core/validation, validateContainerCommon)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.field_references import (
    IN_ENVIRONMENT,
    field_reference_errors,
    resource_reference_errors,
)
from mews.kube.emulated.kinds.pods.resource_errors import resource_errors
from mews.kube.emulated.kinds.pods.restart_errors import file_key_errors, restart_errors
from mews.kube.emulated.kinds.pods.security_errors import container_security_errors
from mews.kube.emulated.kinds.volumes.disk_source_errors import needed
from mews.kube.emulated.kinds.volumes.volume_errors import descending

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TERMINATION_POLICIES = ("File", "FallbackToLogsOnError")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ENV_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_PORT_NAME_TEXT = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
_HEADER_TEXT = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
    "validation is '[-A-Za-z0-9]+')"
)
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
BETWEEN_PORTS = "must be between 1 and 65535, inclusive"
_FOR_SIDECARS = "may not be set for init containers without restartPolicy=Always"


def container_errors(
    container: Part, path: str, pod: Part, volumes: Mapping[str, Part], *, initial: bool, names_before: Collection[str]
) -> Iterator[FieldError]:
    """Yield all that is wrong with a container; ``initial``: it is one of those that run before the others."""
    yield from _common_errors(container, path, pod, volumes)
    name, policy = container.get("name", ""), container.get("restartPolicy")
    if initial and policy is not None and "restartPolicyRules" not in container:
        yield from common.option(f"{path}.restartPolicy", policy, ("Always",))
    if not initial or "restartPolicyRules" in container:
        yield from restart_errors(container, path, initial=initial)
    if name in names_before:
        yield refusals.duplicate(f"{path}.name", name)
    if initial:
        yield from _host_port_errors((container,), path.rpartition("[")[0])
    if initial and policy != "Always":
        for part in ("lifecycle", *_PROBES):
            if container.get(part) is not None:
                yield refusals.forbidden_field(f"{path}.{part}", _FOR_SIDECARS)
        return
    lifecycle, grace_s = container.get("lifecycle") or {}, pod.get("terminationGracePeriodSeconds", 30)
    for part in ("postStart", "preStop"):
        if lifecycle.get(part) is not None:
            yield from _handler_errors(lifecycle[part], f"{path}.lifecycle.{part}", grace_s)
    yield from _probe_errors(container, path, grace_s)


_NOT_EPHEMERAL = ("ports", "resources", "resizePolicy", *_PROBES, "lifecycle", "restartPolicy", "restartPolicyRules")
_FORBIDDEN_THERE = "cannot be set for an Ephemeral Container"


def ephemeral_container_errors(
    container: Part,
    path: str,
    pod: Part,
    volumes: Mapping[str, Part],
    *,
    names_before: Collection[str],
    others: Collection[str],
) -> Iterator[FieldError]:
    """Yield what is wrong with a container that is added to a running pod."""
    yield from _common_errors(container, path, pod, volumes)
    name, target = container.get("name", ""), container.get("targetContainerName", "")
    if name in names_before:
        yield refusals.duplicate(f"{path}.name", name)
    if target and target not in others:
        yield FieldError(f"{path}.targetContainerName", "FieldValueNotFound", refusals.shown(target))
    for field in _NOT_EPHEMERAL:
        if container.get(field) is not None and (field != "resources" or container[field]):
            yield refusals.forbidden_field(f"{path}.{field}", _FORBIDDEN_THERE)
    for index, mount in enumerate(items(container, "volumeMounts")):
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                yield refusals.forbidden_field(f"{path}.volumeMounts[{index}].{field}", _FORBIDDEN_THERE)


def _common_errors(container: Part, path: str, pod: Part, volumes: Mapping[str, Part]) -> Iterator[FieldError]:
    name, termination = container.get("name", ""), container.get("terminationMessagePolicy", "")
    yield from common.label(f"{path}.name", name) if name else [refusals.required(f"{path}.name")]
    if not container.get("image"):
        yield refusals.required(f"{path}.image")
    if not termination:
        yield refusals.required(f"{path}.terminationMessagePolicy")
    elif termination not in _TERMINATION_POLICIES:
        yield refusals.unsupported(f"{path}.terminationMessagePolicy", termination, _TERMINATION_POLICIES)
    yield from _port_errors(items(container, "ports"), f"{path}.ports")
    for index, variable in enumerate(items(container, "env")):
        yield from _variable_errors(variable, f"{path}.env[{index}]")
    yield from _source_errors(items(container, "envFrom"), f"{path}.envFrom")
    yield from _mount_errors(container, f"{path}.volumeMounts", volumes)
    yield from _device_errors(container, f"{path}.volumeDevices", volumes)
    policy = container.get("imagePullPolicy", "")
    if not policy:
        yield refusals.required(f"{path}.imagePullPolicy")
    else:
        yield from common.option(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
    claims = [claim.get("name", "") for claim in items(pod, "resourceClaims")]
    yield from resource_errors(container.get("resources") or {}, f"{path}.resources", claims)
    yield from _resize_errors(items(container, "resizePolicy"), f"{path}.resizePolicy", pod.get("restartPolicy", ""))
    host_users = pod.get("hostUsers") is not False
    yield from container_security_errors(
        container.get("securityContext"), f"{path}.securityContext", host_users=host_users
    )


def _host_port_errors(containers: Sequence[Part], path: str) -> Iterator[FieldError]:
    """Ports of the node that are asked for twice."""
    seen: set[str] = set()
    for number, container in enumerate(containers):
        for index, port in enumerate(items(container, "ports")):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('hostIP', '')}/{port.get('protocol', '')}/{port['hostPort']}"
            if key in seen:
                shown = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                yield refusals.duplicate(f"{path}[{number}].ports[{index}].hostPort", shown)
            seen.add(key)


def host_port_errors(pod: Part, path: str) -> Iterator[FieldError]:
    """Return the same among all containers."""
    return _host_port_errors(items(pod, "containers"), path)


def _port_errors(ports: Sequence[Mapping[str, Any]], path: str) -> Iterator[FieldError]:
    seen = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name", "")
        if name:
            wrong = list(port_name_errors(f"{here}.name", name))
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


def port_name_errors(path: str, name: str) -> Iterator[FieldError]:
    """Yield what is wrong with the name of a port (RFC 6335)."""
    if len(name) > 15:
        yield refusals.bad(path, name, "must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        yield refusals.bad(path, name, _PORT_NAME_TEXT)
    if not re.search("[a-z]", name):
        yield refusals.bad(path, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield refusals.bad(path, name, "must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        yield refusals.bad(path, name, "must not begin or end with a hyphen")


# Complex: upstream's order of errors, which clients see.
def _variable_errors(variable: Part, path: str) -> Iterator[FieldError]:  # noqa: C901
    # The order of validateEnv: the name, then each source, and only then how many sources there are. A variable may be
    # wrong in several of these ways at once and is reported for each.
    name = variable.get("name", "")
    if not name:
        yield refusals.required(f"{path}.name")
    elif not re.fullmatch("[ -<>-~]+", name):
        yield refusals.bad(f"{path}.name", name, _ENV_TEXT)
    source, here = variable.get("valueFrom"), f"{path}.valueFrom"
    if source is None:
        return
    if source.get("fieldRef") is not None:
        yield from field_reference_errors(source["fieldRef"], f"{here}.fieldRef", IN_ENVIRONMENT)
    if source.get("resourceFieldRef") is not None:
        yield from resource_reference_errors(source["resourceFieldRef"], f"{here}.resourceFieldRef", named=False)
    if source.get("fileKeyRef") is not None:
        yield from file_key_errors(source["fileKeyRef"], f"{here}.fileKeyRef")
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if source.get(kind) is not None:
            yield from _key_errors(source[kind], f"{here}.{kind}")
    if not source:
        text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield refusals.bad(here, "", text)
    elif variable.get("value"):
        yield refusals.bad(here, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        yield refusals.bad(here, "", "may not have more than one field specified at a time")


def _key_errors(reference: Part, path: str) -> Iterator[FieldError]:
    yield from names.subdomain_errors(f"{path}.name", reference.get("name", ""))
    key = reference.get("key", "")
    if not key:
        yield refusals.required(f"{path}.key")
        return
    yield from common.bads(f"{path}.key", key, config_key_texts(key))


def config_key_texts(key: str) -> Iterator[str]:
    """Yield why a text is no key of a ConfigMap or Secret (IsConfigMapKey)."""
    if len(key) > 253:
        yield "must be no more than 253 characters"
    if not re.fullmatch("[-._a-zA-Z0-9]+", key):
        yield _KEY_TEXT
    if key == ".":
        yield "must not be '.'"
    elif key == "..":
        yield "must not be '..'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def is_config_key(key: str) -> bool:
    """Return whether a text is one."""
    return len(key) <= 253 and _is_config_key(key)


@lru_cache(maxsize=4096)
def _is_config_key(key: str) -> bool:
    """A ConfigMap's few are looked at with each write of it."""
    return not any(config_key_texts(key))


def _source_errors(sources: Sequence[Part], path: str) -> Iterator[FieldError]:
    for index, source in enumerate(sources):
        here, prefix = f"{path}[{index}]", source.get("prefix", "")
        if prefix and not re.fullmatch("[ -<>-~]+", prefix):
            yield refusals.bad(f"{here}.prefix", prefix, _ENV_TEXT)
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in given:
            wrong = list(needed(source[name], f"{here}.{name}", "name"))
            referred = source[name].get("name", "")
            masked = f"{referred[:-2]}a" if len(referred) > 1 and referred.endswith("-") else referred
            yield from wrong or common.bads(f"{here}.{name}.name", referred, names.subdomain_texts(masked))
        if not given:
            yield refusals.bad(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield refusals.bad(path, "", "may not have more than one field specified at a time")


def _mount_errors(container: Part, path: str, volumes: Mapping[str, Part]) -> Iterator[FieldError]:
    seen: set[str] = set()
    devices = {device.get("name", ""): device.get("devicePath", "") for device in items(container, "volumeDevices")}
    for index, mount in enumerate(items(container, "volumeMounts")):
        here, name, place = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield refusals.required(f"{here}.name")
        if name not in volumes:
            yield FieldError(f"{here}.name", "FieldValueNotFound", refusals.shown(name))
        if not place:
            yield refusals.required(f"{here}.mountPath")
        if place in seen:
            yield refusals.bad(f"{here}.mountPath", place, "must be unique")
        seen.add(place)
        if name in devices:
            yield refusals.bad(f"{here}.name", name, "must not already exist in volumeDevices")
        if place in devices.values():
            text = "must not already exist as a path in volumeDevices"
            yield refusals.bad(f"{here}.mountPath", place, text)
        yield from _mount_option_errors(mount, path, here, container)


def _mount_option_errors(mount: Part, path: str, here: str, container: Part) -> Iterator[FieldError]:
    """Upstream complains of these at the list, not at its item."""
    part, expression, propagation = (mount.get(name) for name in ("subPath", "subPathExpr", "mountPropagation"))
    if part:
        yield from descending(f"{path}.subPath", part)
    if expression:
        if part:
            yield refusals.bad(f"{here}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
        yield from descending(f"{path}.subPathExpr", expression)
    if propagation is not None:
        yield from common.option(f"{path}.mountPropagation", propagation, ("Bidirectional", "HostToContainer", "None"))
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        text = "Bidirectional mount propagation is available only to privileged containers"
        yield refusals.forbidden_field(f"{path}.mountPropagation", text)
    recursive = mount.get("recursiveReadOnly")
    if recursive is None:
        return
    yield from common.option(f"{path}.recursiveReadOnly", recursive, ("Disabled", "Enabled", "IfPossible"))
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield refusals.forbidden_field(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            text = "may only be specified when mountPropagation is None or not specified"
            yield refusals.forbidden_field(f"{path}.recursiveReadOnly", text)


def _device_errors(container: Part, path: str, volumes: Mapping[str, Part]) -> Iterator[FieldError]:
    seen: set[str] = set()
    paths: set[str] = set()
    mounts = {mount.get("name", ""): mount.get("mountPath", "") for mount in items(container, "volumeMounts")}
    for index, device in enumerate(items(container, "volumeDevices")):
        here, name, place = f"{path}[{index}]", device.get("name", ""), device.get("devicePath", "")
        volume = volumes.get(name)
        if not name:
            yield refusals.required(f"{here}.name")
        if name in seen:
            yield refusals.bad(f"{here}.name", name, "must be unique")
        if volume is None:
            yield FieldError(f"{here}.name", "FieldValueNotFound", refusals.shown(name))
        elif not {"persistentVolumeClaim", "ephemeral"} & set(volume):
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield refusals.bad(f"{here}.name", name, text)
        yield from _device_path_errors(place, f"{here}.devicePath", paths)
        if name in mounts:
            yield refusals.bad(f"{here}.name", name, "must not already exist in volumeMounts")
        if place in mounts.values():
            yield refusals.bad(f"{here}.devicePath", place, "must not already exist as a path in volumeMounts")
        seen |= {name} - {""}


def _device_path_errors(place: str, path: str, seen: set[str]) -> Iterator[FieldError]:
    if not place:
        yield refusals.required(path)
    if place in seen:
        yield refusals.bad(path, place, "must be unique")
    if ".." in place.split("/"):
        yield refusals.bad(path, place, "can not contain backsteps ('..')")
    else:
        seen.add(place)


def _resize_errors(policies: Sequence[Part], path: str, restart: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, way = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield refusals.duplicate(f"{path}[{index}]", name)
        seen.add(name)
        for value, allowed in ((name, ("cpu", "memory")), (way, ("NotRequired", "RestartContainer"))):
            yield from common.option(path, value, allowed) if value else [refusals.required(path)]
        if restart == "Never" and way != "NotRequired":
            yield refusals.bad(path, way, "must be 'NotRequired' when `restartPolicy` is 'Never'")


def _probe_errors(container: Part, path: str, grace_s: int) -> Iterator[FieldError]:
    for name in _PROBES:
        probe, here = container.get(name), f"{path}.{name}"
        if probe is None:
            continue
        yield from _handler_errors(probe, here, grace_s)
        for number in _PROBE_NUMBERS:
            yield from common.not_negative(f"{here}.{number}", probe.get(number))
        own_grace_s = probe.get("terminationGracePeriodSeconds")
        if own_grace_s is not None and own_grace_s <= 0:
            yield refusals.bad(f"{here}.terminationGracePeriodSeconds", own_grace_s, "must be greater than 0")
        if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
            yield refusals.bad(f"{here}.successThreshold", probe["successThreshold"], "must be 1")
        elif name == "readinessProbe" and own_grace_s is not None:
            text = "must not be set for readinessProbes"
            yield refusals.bad(f"{here}.terminationGracePeriodSeconds", own_grace_s, text)


def _handler_errors(handler: Part, path: str, grace_s: int) -> Iterator[FieldError]:
    given = [name for name in _HANDLERS if handler.get(name) is not None]
    if not given:
        yield refusals.required(path, "must specify a handler type")
    for index, name in enumerate(given):
        here, content = f"{path}.{name}", handler[name]
        if index:
            yield refusals.forbidden_field(here, "may not specify more than 1 handler type")
        elif name == "exec":
            yield from needed(content, here, "command")
        elif name == "sleep":
            seconds = content.get("seconds", 0)
            if not 0 < seconds <= grace_s:
                text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s}). "
                text += "Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
                if seconds != 0 or grace_s < 0:
                    text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
                    yield refusals.bad(here, seconds, text)
        else:
            yield from _address_errors(name, content, here)


def _address_errors(name: str, content: Part, path: str) -> Iterator[FieldError]:
    if name == "httpGet":
        yield from needed(content, path, "path")
    port = content.get("port", 0)
    if isinstance(port, int):
        yield from common.port(f"{path}.port", port)
    else:
        yield from port_name_errors(f"{path}.port", port)
    if name == "httpGet":
        yield from common.option(f"{path}.scheme", content.get("scheme", ""), ("HTTP", "HTTPS"))
        for header in items(content, "httpHeaders"):
            if not re.fullmatch("[-A-Za-z0-9]+", header.get("name", "")):
                yield refusals.bad(f"{path}.httpHeaders", header.get("name", ""), _HEADER_TEXT)
