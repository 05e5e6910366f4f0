"""A pod's ``/etc/resolv.conf``, where its spec says something of it (pkg/kubelet/network/dns, GetPodDNS).

An emulated node has no cluster DNS, so that ``ClusterFirst`` is what ``Default`` is, as on a kubelet without
``--cluster-dns``: the machine's file. Names of Services are in ``/etc/hosts``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object

MACHINES = Path("/etc/resolv.conf")
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES = 3, 32, 2048
"""Limits of what is written (pkg/apis/core/validation, MaxDNSNameservers and what follows it)."""


class ResolverConfig(Struct, frozen=True):
    """What a resolv.conf says; ``options`` are name -> value, "" where it has none."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: Mapping[str, str] = {}

    def text(self) -> str:
        """Return the file."""
        searches = list(self.searches[:_MOST_SEARCHES])
        while len(" ".join(searches)) > _LONGEST_SEARCHES:
            searches.pop()
        lines = [f"nameserver {server}" for server in self.servers[:_MOST_SERVERS]]
        lines += [f"search {' '.join(searches)}"] if searches else []
        words = [f"{name}:{value}" if value else name for name, value in self.options.items()]
        lines += [f"options {' '.join(words)}"] if words else []
        return "".join(f"{line}\n" for line in lines)


def has_own_resolver(pod: Object) -> bool:
    """Return whether a pod's file is not the machine's."""
    return pod["spec"].get("dnsPolicy") == "None" or bool(pod["spec"].get("dnsConfig"))


def resolver_config(pod: Object, machines: str) -> ResolverConfig:
    """Return what the pod asks for, after what the machine's file says unless its policy is ``None``."""
    base = ResolverConfig() if pod["spec"].get("dnsPolicy") == "None" else read(machines)
    asked: Mapping[str, Any] = pod["spec"].get("dnsConfig") or {}
    options = {str(each["name"]): str(each.get("value") or "") for each in asked.get("options") or ()}
    return ResolverConfig(
        _once((*base.servers, *(asked.get("nameservers") or ()))),
        _once((*base.searches, *(asked.get("searches") or ()))),
        {**base.options, **options},
    )


def read(text: str) -> ResolverConfig:
    """Return a file's text (parseResolvConf): of search lines the last counts, options add up."""
    servers: list[str] = []
    searches: tuple[str, ...] = ()
    options: dict[str, str] = {}
    for line in text.splitlines():
        match line.split():
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search", *words]:
                searches = tuple(word if word == "." else word.removesuffix(".") for word in words)
            case ["options", *words]:
                options |= {name: value for name, _, value in (word.partition(":") for word in words)}
    return ResolverConfig(tuple(servers), searches, options)


def resolver_file(pod: Object, folder: Path) -> Path | None:
    """Return the pod's file, written into its folder; None where it is the machine's. Blocking, for as long as that
    takes."""
    if not has_own_resolver(pod):
        return None
    machines = ""
    with contextlib.suppress(OSError):
        machines = MACHINES.read_text("utf-8", "replace")
    path = folder / "resolv.conf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(resolver_config(pod, machines).text(), encoding="utf-8")
    return path


def _once(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
