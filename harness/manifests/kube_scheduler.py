"""What kube-scheduler is told: a KubeSchedulerConfiguration, and the entries of extenders in it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit


def configuration(
    kubeconfig: str,
    extenders: Sequence[Mapping[str, Any]],
    connection: Mapping[str, Any] = MappingProxyType({}),
    plugin_args: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return a KubeSchedulerConfiguration of one scheduler that is alone; ``connection`` is more of its
    clientConnection, ``plugin_args`` the arguments of plugins by name."""
    profile = {
        "schedulerName": "default-scheduler",
        "pluginConfig": [{"name": name, "args": dict(args)} for name, args in plugin_args.items()],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, **connection},
        "leaderElection": {"leaderElect": False},
        "extenders": [dict(extender) for extender in extenders],
        **({"profiles": [profile]} if plugin_args else {}),
    }


def extender_place(url: str, authority: str | None, server_name: str) -> dict[str, Any]:
    """Return where an extender is, as its entry says it: under TLS, where ``authority`` (PEM) has signed its
    certificate for that name."""
    if authority is None:
        return {"urlPrefix": url}
    trusted = {"caData": base64.b64encode(authority.encode()).decode(), "serverName": server_name}
    return {"urlPrefix": url, "enableHTTPS": True, "tlsConfig": trusted}


def at_address(entry: Mapping[str, Any], address: str) -> dict[str, Any]:
    """Return the entry for a scheduler that has no DNS: by the service's address, whose certificate still bears its
    name."""
    url = urlsplit(str(entry["urlPrefix"]))
    shown = f"[{address}]" if ":" in address else address
    return {**entry, "urlPrefix": url._replace(netloc=f"{shown}:{url.port}").geturl()}
