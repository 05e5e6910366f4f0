"""The checks of the Pod Security Standards with upstream's texts (k8s.io/pod-security-admission policy)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Pod = Mapping[str, Any]
Finding = tuple[str, str]
"""What is wrong in two words, and where; the latter may be empty."""

Check = Callable[[Pod, Mapping[str, Any], int], Finding | None]
"""(metadata, pod spec, minor version of the standard) -> a finding, or None for a pod that passes."""

_LISTS = ("initContainers", "containers", "ephemeralContainers")
_DEFAULT_CAPABILITIES = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
        *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_SYSCTLS: Mapping[str, int] = {
    **dict.fromkeys(("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"), 0),
    **dict.fromkeys(("net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"), 0),
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_fin_timeout": 29,
    **{f"net.ipv4.tcp_keepalive_{name}": 29 for name in ("time", "intvl", "probes")},
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
"""Those that are safe, by the minor version that allowed them."""

LATEST = 34
_VOLUMES = (
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"),
    "secret",
)
_SECURE = ("RuntimeDefault", "Localhost")
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def containers(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield all containers of a pod, the init containers first."""
    for name in _LISTS:
        yield from spec.get(name) or ()


def _context(holder: Mapping[str, Any]) -> Mapping[str, Any]:
    return holder.get("securityContext") or {}


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _named(names: Sequence[str]) -> str:
    return f"container{'s' if len(names) != 1 else ''} {_quoted(names)}"


def _setters(spec: Mapping[str, Any], is_bad: Callable[[Mapping[str, Any]], bool], join: str = " and ") -> str:
    """``pod and containers "a", "b"``: whose security context is bad."""
    names = [str(each.get("name", "")) for each in containers(spec) if is_bad(_context(each))]
    parts = [*(["pod"] if is_bad(_context(spec)) else []), *([_named(names)] if names else [])]
    return join.join(parts)


def _app_armor(metadata: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    def is_bad(context: Mapping[str, Any]) -> bool:
        return (context.get("appArmorProfile") or {}).get("type") == "Unconfined"

    texts = []
    who = _setters(spec, is_bad)
    if who:
        texts.append(f'{who} must not set AppArmor profile type to "Unconfined"')
    bad = [
        f"{key}={_quoted([value])}"
        for key, value in sorted((metadata.get("annotations") or {}).items())
        if key.startswith(_APPARMOR) and not (value in ("", "runtime/default") or value.startswith("localhost/"))
    ]
    if bad:
        texts.append(f"annotation{'s' if len(bad) != 1 else ''} {', '.join(bad)}")
    noun = "profiles" if len(bad) > 1 else "profile"
    return (f"forbidden AppArmor {noun}", " and ".join(texts)) if texts else None


def _capabilities(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    names, foreign = _adding(spec, _DEFAULT_CAPABILITIES)
    if not names:
        return None
    text = f"{_named(names)} must not include {_quoted(foreign)} in securityContext.capabilities.add"
    return "non-default capabilities", text


def _adding(spec: Mapping[str, Any], allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    names, foreign = [], set()
    for each in containers(spec):
        bad = set((_context(each).get("capabilities") or {}).get("add") or ()) - allowed
        if bad:
            names.append(str(each.get("name", "")))
            foreign |= bad
    return names, sorted(foreign)


def _namespaces(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    found = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return ("host namespaces", ", ".join(found)) if found else None


def _host_paths(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    found = [each["name"] for each in spec.get("volumes") or () if "hostPath" in each]
    return ("hostPath volumes", f"volume{'s' if len(found) != 1 else ''} {_quoted(found)}") if found else None


def _host_ports(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    names, ports = [], set()
    for each in containers(spec):
        used = {port["hostPort"] for port in each.get("ports") or () if port.get("hostPort")}
        if used:
            names.append(str(each.get("name", "")))
            ports |= used
    if not names:
        return None
    verb = "use" if len(names) > 1 else "uses"
    shown = ", ".join(sorted(str(port) for port in ports))
    return "hostPort", f"{_named(names)} {verb} hostPort{'s' if len(ports) != 1 else ''} {shown}"


_PROBES_SINCE = 34


def _probe_hosts(_: Pod, spec: Mapping[str, Any], minor: int) -> Finding | None:
    if minor < _PROBES_SINCE:
        return None
    names: list[str] = []
    hosts: set[str] = set()
    for each in containers(spec):
        lifecycle = each.get("lifecycle") or {}
        handlers = [each.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
        used = {
            (handler.get(way) or {}).get("host", "")
            for handler in handlers
            if handler
            for way in ("httpGet", "tcpSocket")
        } - {""}
        if used:
            names.append(str(each.get("name", "")))
            hosts |= used
    if not names:
        return None
    verb, plural = "use" if len(names) > 1 else "uses", "s" if len(hosts) != 1 else ""
    text = f"{_named(names)} {verb} probe or lifecycle host{plural} {_quoted(sorted(hosts))}"
    return "probe or lifecycle host", text


def _privileged(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    names = [str(each.get("name", "")) for each in containers(spec) if _context(each).get("privileged")]
    return ("privileged", f"{_named(names)} must not set securityContext.privileged=true") if names else None


def _proc_mount(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    found = [each for each in containers(spec) if _context(each).get("procMount", "Default") != "Default"]
    if not found:
        return None
    names = [str(each.get("name", "")) for each in found]
    types = sorted({str(_context(each)["procMount"]) for each in found})
    return "procMount", f"{_named(names)} must not set securityContext.procMount to {_quoted(types)}"


def _selinux(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    types: set[str] = set()
    parts: dict[str, None] = {}

    def is_bad(context: Mapping[str, Any]) -> bool:
        options = context.get("seLinuxOptions") or {}
        bad = options.get("type", "") not in _SELINUX_TYPES
        if bad:
            types.add(options["type"])
        given = [name for name in ("user", "role") if options.get(name)]
        parts.update(dict.fromkeys(given))
        return bad or bool(given)

    who = _setters(spec, is_bad)
    if not who:
        return None
    texts = [f"type{'s' if len(types) != 1 else ''} {_quoted(sorted(types))}"] if types else []
    texts += [f"{name} may not be set" for name in ("user", "role") if name in parts]
    return "seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(texts)}"


def _profile(context: Mapping[str, Any]) -> Any:
    return (context.get("seccompProfile") or {}).get("type")


def _seccomp(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    who, types = _bad_profiles(spec)
    return ("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {types}") if who else None


def _bad_profiles(spec: Mapping[str, Any]) -> tuple[str, str]:
    bad = {str(_profile(_context(each))) for each in (spec, *containers(spec))} - {"None", *_SECURE}
    who = _setters(spec, lambda context: _profile(context) is not None and _profile(context) not in _SECURE)
    return who, _quoted(sorted(bad))


def _sysctls(_: Pod, spec: Mapping[str, Any], minor: int) -> Finding | None:
    names = [each["name"] for each in _context(spec).get("sysctls") or ()]
    found = [name for name in names if _SYSCTLS.get(name, LATEST + 1) > minor]
    return ("forbidden sysctls", ", ".join(found)) if found else None


def _host_process(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    who = _setters(spec, lambda context: bool((context.get("windowsOptions") or {}).get("hostProcess")))
    return ("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true") if who else None


def _is_windows(spec: Mapping[str, Any]) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


def _escalation(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    names = [
        str(each.get("name", ""))
        for each in containers(spec)
        if _context(each).get("allowPrivilegeEscalation") is not False
    ]
    if not names or _is_windows(spec):
        return None
    return "allowPrivilegeEscalation != false", (
        f"{_named(names)} must set securityContext.allowPrivilegeEscalation=false"
    )


def _dropped(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    if _is_windows(spec):
        return None
    keeping = [
        str(each.get("name", ""))
        for each in containers(spec)
        if "ALL" not in ((_context(each).get("capabilities") or {}).get("drop") or ())
    ]
    names, foreign = _adding(spec, frozenset(("NET_BIND_SERVICE",)))
    texts = []
    if keeping:
        texts.append(f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if names:
        texts.append(f"{_named(names)} must not include {_quoted(foreign)} in securityContext.capabilities.add")
    return ("unrestricted capabilities", "; ".join(texts)) if texts else None


def _volume_types(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    names, types = [], set()
    for volume in spec.get("volumes") or ():
        kinds = [key for key in volume if key != "name"]
        if kinds and not any(kind in _VOLUMES for kind in kinds):
            names.append(volume["name"])
            types.update(kinds)
    if not names:
        return None
    verb, plural = ("use", "s") if len(names) > 1 else ("uses", "")
    text = f"volume{plural} {_quoted(names)} {verb} restricted volume type{'s' if len(types) != 1 else ''}"
    return "restricted volume types", f"{text} {_quoted(sorted(types))}"


def _non_root(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    who = _setters(spec, lambda context: context.get("runAsNonRoot") is False)
    pod = _context(spec).get("runAsNonRoot")
    if who and not (who == "pod" and all(_context(each).get("runAsNonRoot") for each in containers(spec))):
        return "runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false"
    if pod:
        return None
    names = [str(each.get("name", "")) for each in containers(spec) if _context(each).get("runAsNonRoot") is None]
    if not names:
        return None
    return "runAsNonRoot != true", f"pod or {_named(names)} must set securityContext.runAsNonRoot=true"


def _root_user(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    who = _setters(spec, lambda context: context.get("runAsUser") == 0)
    return ("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def _seccomp_set(_: Pod, spec: Mapping[str, Any], _minor: int) -> Finding | None:
    if _is_windows(spec):
        return None
    who, types = _bad_profiles(spec)
    if who:
        return "seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {types}"
    if _profile(_context(spec)) in _SECURE:
        return None
    names = [str(each.get("name", "")) for each in containers(spec) if _profile(_context(each)) is None]
    if not names:
        return None
    text = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return "seccompProfile", f"pod or {_named(names)} {text}"


_COMMON: Sequence[tuple[Check, bool]] = (
    (_app_armor, True),
    (_capabilities, False),
    (_namespaces, True),
    (_host_paths, False),
    (_host_ports, True),
    (_probe_hosts, True),
    (_privileged, True),
    (_proc_mount, True),
    (_selinux, True),
    (_seccomp, False),
    (_sysctls, True),
    (_host_process, True),
)
"""Checks of the baseline, and whether the restricted level has them too (it has its own in the others' place)."""

CHECKS: Mapping[str, Sequence[Check]] = {
    "privileged": (),
    "baseline": tuple(check for check, _ in _COMMON),
    "restricted": (
        *(check for check, kept in _COMMON if kept),
        *(_escalation, _dropped, _volume_types, _non_root, _root_user, _seccomp_set),
    ),
}


def findings(level: str, minor: int, metadata: Pod, spec: Mapping[str, Any]) -> list[Finding]:
    """Return what a pod does that its level forbids, as the standard was in that minor version."""
    return [found for check in CHECKS[level] if (found := check(metadata, spec, minor)) is not None]
