"""What of this machine a pod asks for beyond what any container has. Pure.

A container of an emulated node is one of this machine's engine: what a node's own pods may do to their node, this one
would do to the developer's machine. The default is what a container engine gives by itself: its capabilities, its
seccomp profile, its AppArmor profile (Docker Engine: ``oci/caps/defaults.go``, ``profiles/seccomp/default.json``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object

SWITCH = "--allow-host-access"
_GIVEN = frozenset(
    {
        *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW"),
        *("AUDIT_WRITE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
"""Capabilities that every container of the engine has: to ask for one of them asks for nothing."""
_SHARED = ("hostNetwork", "hostPID", "hostIPC")


def host_access(pod: Object, container: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields by which a container asks for this machine, each with its value; host paths are not among
    them."""
    for name in _SHARED:
        if pod["spec"].get(name):
            yield f"{name}: true"
    of_pod, own = pod["spec"].get("securityContext") or {}, container.get("securityContext") or {}
    if own.get("privileged"):
        yield "privileged: true"
    for name in (own.get("capabilities") or {}).get("add") or ():
        if str(name).upper().removeprefix("CAP_") not in _GIVEN:
            yield f"capabilities.add: {name}"
    for field in ("seccompProfile", "appArmorProfile"):
        kind = (own.get(field) or of_pod.get(field) or {}).get("type")
        if kind == "Unconfined":
            yield f"{field}: {kind}"
    if own.get("procMount") == "Unmasked":
        yield "procMount: Unmasked"


def refusal(asked: str) -> str:
    """Return one line about a container that asks for this machine."""
    return f"{asked}: containers of emulated nodes get no access to this machine unless {SWITCH} is given"
