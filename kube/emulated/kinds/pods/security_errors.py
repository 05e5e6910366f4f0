"""What is wrong with security contexts of pods and containers (pkg/apis/core/validation)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.volumes.volume_errors import descending
from mews.kube.emulated.types import internal_kinds

_LAST_ID = 2**31 - 1
_ID_TEXT = f"must be between 0 and {_LAST_ID}, inclusive"
_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_LONGEST_SYSCTL = 253
_LONGEST_PROFILE = 4095
_USER_SIGNS = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DOMAIN_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN = re.compile(rf"{_DOMAIN_LABEL}(?:\.{_DOMAIN_LABEL})*")


def _id_errors(value: Any, path: str) -> Iterator[FieldError]:
    if value is not None and not 0 <= value <= _LAST_ID:
        yield refusals.bad(path, value, _ID_TEXT)


def container_security_errors(context: Part | None, path: str, *, host_users: bool) -> Iterator[FieldError]:
    """Yield what is wrong with a container's context (ValidateSecurityContext)."""
    if context is None:
        return
    if context.get("privileged"):
        yield from ()  # the server runs with --allow-privileged, as every cluster does
    for name in ("runAsUser", "runAsGroup"):
        yield from _id_errors(context.get(name), f"{path}.{name}")
    mount = context.get("procMount")
    if mount is not None:
        yield from common.option(f"{path}.procMount", mount, ("Default", "Unmasked"))
    if mount == "Unmasked" and host_users:
        yield refusals.bad(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp_errors(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged"):
        text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield refusals.bad(path, internal_kinds.internal(context, "core.SecurityContext"), text)
    if context.get("allowPrivilegeEscalation") is False:
        for name in items(context.get("capabilities") or {}, "add"):
            if name == "CAP_SYS_ADMIN":
                text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                yield refusals.bad(path, internal_kinds.internal(context, "core.SecurityContext"), text)
    yield from windows_errors(context.get("windowsOptions"), f"{path}.windowsOptions")
    yield from _app_armor_errors(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def pod_security_errors(spec: Part, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a pod's context (validatePodSpecSecurityContext)."""
    context, here = spec.get("securityContext") or {}, f"{path}.securityContext"
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from _id_errors(context.get(name), f"{here}.{name}")
    for index, group in enumerate(items(context, "supplementalGroups")):
        yield from _id_errors(group, f"{here}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield refusals.bad(f"{here}.shareProcessNamespace", True, text)
    yield from _sysctl_errors(items(context, "sysctls"), f"{here}.sysctls", spec)
    yield from _choice_errors(context, here, "fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    yield from _seccomp_errors(context.get("seccompProfile"), f"{here}.seccompProfile")
    yield from windows_errors(context.get("windowsOptions"), f"{here}.windowsOptions")
    yield from _app_armor_errors(context.get("appArmorProfile"), f"{here}.appArmorProfile")
    yield from _choice_errors(context, here, "supplementalGroupsPolicy", ("Merge", "Strict"))
    yield from _choice_errors(context, here, "seLinuxChangePolicy", ("Recursive",))


def _choice_errors(part: Part, path: str, name: str, allowed: tuple[str, ...]) -> Iterator[FieldError]:
    if part.get(name) is not None:
        yield from common.option(f"{path}.{name}", part[name], allowed)


_LINUX = "windows options cannot be set for a linux pod"
_WINDOWS = "cannot be set for a windows pod"


def linux_errors(spec: Part, path: str) -> Iterator[FieldError]:
    """Yield what a pod that says that it is one of Linux may not ask for."""
    places = [(spec, path)]
    for name in ("initContainers", "containers", "ephemeralContainers"):
        places += [(each, f"{path}.{name}[{index}]") for index, each in enumerate(items(spec, name))]
    for part, here in places:
        if (part.get("securityContext") or {}).get("windowsOptions") is not None:
            yield refusals.forbidden_field(f"{here}.securityContext.windowsOptions", _LINUX)


_NOT_ON_WINDOWS = (
    "appArmorProfile", "seLinuxOptions", "hostUsers", "hostPID", "hostIPC", "seccompProfile", "fsGroup",
    "fsGroupChangePolicy", "sysctls", "shareProcessNamespace", "runAsUser", "runAsGroup", "supplementalGroups",
    "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
_OF_THE_SPEC = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
_NOT_IN_WINDOWS_CONTAINERS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip
_FALSE_IS_NONE = ("hostPID", "hostIPC", "sysctls")


def windows_pod_errors(spec: Part, path: str) -> Iterator[FieldError]:
    """Yield what a pod that says that it is one of Windows may not ask for (validateWindows)."""
    context = spec.get("securityContext") or {}
    for name in _NOT_ON_WINDOWS:
        holder, here = (spec, path) if name in _OF_THE_SPEC else (context, f"{path}.securityContext")
        value = holder.get(name)
        if value or (value is not None and name not in _FALSE_IS_NONE):
            yield refusals.forbidden_field(f"{here}.{name}", _WINDOWS)
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, kind)):
            for name in _NOT_IN_WINDOWS_CONTAINERS:
                if (container.get("securityContext") or {}).get(name) is not None:
                    yield refusals.forbidden_field(f"{path}.{kind}[{index}].securityContext.{name}", _WINDOWS)


_OF_HOSTS = {
    "hostNetwork": ("net.",),
    "hostIPC": ("kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue."),
}


def host_process_errors(spec: Part, path: str) -> Iterator[FieldError]:
    """validateWindowsHostProcessPod, with privileged containers allowed: all containers are HostProcess, or none is."""
    of_pod, count, running = _host_process(spec), 0, 0
    for place in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, place)):
            own = _host_process(container)
            if None not in (of_pod, own) and own != of_pod:
                here = f"{path}.{place}[{index}].securityContext.windowsOptions.hostProcess"
                text = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
                yield refusals.bad(here, own, text)
            count, running = count + 1, running + bool(of_pod if own is None else own)
    if running and running != count:
        text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield refusals.bad(path, "", text)
    if running and not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        yield refusals.bad(f"{path}.hostNetwork", False, text)


def _host_process(holder: Part) -> bool | None:
    options = common.part_of(common.part_of(holder, "securityContext"), "windowsOptions")
    found: bool | None = options.get("hostProcess")
    return found


def _sysctl_errors(given: Any, path: str, spec: Part) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, sysctl in enumerate(given):
        here, name = f"{path}[{index}].name", sysctl.get("name", "")
        if not name:
            yield refusals.required(here)
        elif len(name) > _LONGEST_SYSCTL or not re.fullmatch(_SYSCTL, name):
            text = f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL}$"
            yield refusals.bad(here, name, text)
        elif name in seen:
            yield refusals.duplicate(here, name)
        seen.add(name)
        for field, prefixes in _OF_HOSTS.items():
            if spec.get(field) and name.replace("/", ".").startswith(prefixes):
                yield refusals.bad(here, name, f"may not be specified when '{field}' is true")
                break


def _seccomp_errors(profile: Part | None, path: str) -> Iterator[FieldError]:
    if profile is None:
        return
    kind, place = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield refusals.required(f"{path}.type", "type is required when seccompProfile is set")
    else:
        yield from common.option(f"{path}.type", kind, _SECCOMP)
    if kind == "Localhost" and place is None:
        yield refusals.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
    elif kind == "Localhost":
        yield from descending(f"{path}.localhostProfile", str(place))
    elif place is not None:
        shown = {"Type": kind, "LocalhostProfile": place}
        yield refusals.bad(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost")


def _app_armor_errors(profile: Part | None, path: str) -> Iterator[FieldError]:
    if profile is None:
        return
    kind, place = profile.get("type", ""), profile.get("localhostProfile")
    here, needed = f"{path}.localhostProfile", "must be set when AppArmor type is Localhost"
    if kind == "Localhost":
        if not place:
            yield refusals.required(here, needed)
        elif place.strip() != place:
            yield refusals.bad(here, place, "must not be padded with whitespace")
        if place is not None and len(place) > _LONGEST_PROFILE:
            yield common.too_long(here, _LONGEST_PROFILE)
    elif kind in _SECCOMP:
        if place is not None:
            yield refusals.bad(here, place, "can only be set when AppArmor type is Localhost")
    elif not kind:
        yield refusals.required(f"{path}.type", "type is required when appArmorProfile is set")
    else:
        yield refusals.unsupported(f"{path}.type", kind, _SECCOMP)


def windows_errors(options: Part | None, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the options of Windows' containers."""
    if options is None:
        return
    name, spec, user = (options.get(key) for key in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"))
    if name is not None:
        yield from names.subdomain_errors(f"{path}.gmsaCredentialSpecName", name)
    if spec == "":
        yield refusals.bad(f"{path}.gmsaCredentialSpec", spec, "gmsaCredentialSpec cannot be an empty string")
    if user is not None:
        yield from common.bads(f"{path}.runAsUserName", user, _user_texts(user))


def _user_texts(name: str) -> Iterator[str]:
    if not name:
        yield "runAsUserName cannot be an empty string"
        return
    if re.search(r"[\x00-\x1f\x7f]", name):
        yield "runAsUserName cannot contain control characters"
        return
    domain, separator, user = name.rpartition("\\")
    if "\\" in domain:
        yield "runAsUserName cannot contain more than one backslash"
        return
    if len(domain) >= 256:
        yield "runAsUserName's Domain length must be under 256 characters"
    if separator and not _NETBIOS.fullmatch(domain) and not _DOMAIN.fullmatch(domain):
        yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "runAsUserName's User cannot be empty"
    elif len(user) > 104:
        yield "runAsUserName's User length must not be longer than 104 characters"
    if user and not user.strip(". "):
        yield "runAsUserName's User cannot contain only periods or spaces"
    if _USER_SIGNS.search(user):
        yield "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
