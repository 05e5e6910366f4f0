"""Services: what they are given, what they may ask for, and what goes with a type that they leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.differential.areas.bodies import opened, place
from tests.differential.model import MERGE, Case, Sent

_PATH = f"{place('services')}/services"
_OLD: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "node": {"type": "NodePort"},
    "balanced": {"type": "LoadBalancer", "loadBalancerClass": "example.com/class"},
    "local": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
    "outside": {"type": "ExternalName", "externalName": "example.com"},
    "headless": {"clusterIP": "None"},
}
_TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
_ASKED: Mapping[str, Mapping[str, Any]] = {
    "a node port": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30111}]},
    "its node port again": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30111}]},
    "a port that is no node port": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
    "an address": {"clusterIP": "10.96.77.7"},
    "its address again": {"clusterIP": "10.96.77.7"},
    "an address of elsewhere": {"clusterIP": "10.97.1.1"},
    "an address of a family that is not there": {"clusterIP": "fd00::1"},
    "no time for a client": {
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}},
    },
    "a port of two protocols": {
        "type": "NodePort",
        "ports": [{"port": 80, "name": "a"}, {"port": 80, "protocol": "UDP", "name": "b"}],
    },
}


def _service(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def _turned(kind: str) -> Any:
    def edit(stored: Any) -> Any:
        stored["metadata"].pop("managedFields", None)
        stored["spec"].pop("externalName", None)
        stored["spec"] |= {"type": kind, **({"externalName": "x.example.com"} if kind == "ExternalName" else {})}
        return stored

    return edit


def _cases() -> Iterator[Case]:
    yield opened("services")
    for old, spec in _OLD.items():
        for kind in _TYPES:
            name = f"{old}-{kind.lower()}"
            yield Sent(f"make {name}", "POST", _PATH, _service(name, spec))
            path = f"{_PATH}/{name}"
            yield Sent(f"turn {name}", "PUT", path, edits=(path, _turned(kind)))
            back = {"spec": {"type": "ClusterIP", "externalName": None}}
            yield Sent(f"turn {name} back", "PATCH", path, back, content_type=MERGE)
    for number, (words, spec) in enumerate(_ASKED.items()):
        yield Sent(f"ask for {words}", "POST", _PATH, _service(f"asks-{number}", spec))


CASES = tuple(_cases())
