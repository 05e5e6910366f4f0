"""Drawn pods in namespaces with drawn limit ranges and levels of Pod Security; drawn expressions about drawn data."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from tests.differential.model import Case, Sent

_SETTLED_S = 1.5
"""How long the real server takes to see ranges, namespaces and policies."""

_PODS = 12
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_AMOUNTS = {"cpu": ("50m", "100m", "250m", "1", "1500m", "2"), "memory": ("32Mi", "100M", "256Mi", "1Gi")}
_CAPABILITIES = ("CHOWN", "NET_ADMIN", "NET_BIND_SERVICE", "SYS_TIME")
_VOLUMES: tuple[dict[str, Any], ...] = (
    {"emptyDir": {}},
    {"hostPath": {"path": "/x"}},
    {"nfs": {"server": "s", "path": "/p"}},
    {"configMap": {"name": "c"}},
    {"secret": {"secretName": "s"}},
)


def cases(seeds: Iterable[int]) -> tuple[Case, ...]:
    """All that is put to both servers: what guards first, so that one pause is enough."""
    worlds = [_World(seed) for seed in seeds]
    made = [case for world in worlds for case in world.guards()]
    asked = [case for world in worlds for case in world.asked()]
    first = asked[0]
    asked[0] = Sent(first.name, first.method, first.path, first.body, after_s=_SETTLED_S)
    return (*made, *asked, *(case for world in worlds for case in world.end()))


class _World:
    """One namespace and what is in its way, all from one seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._name = f"guarded-{seed}"
        self._port = 8000

    def guards(self) -> Iterator[Sent]:
        rng, name = self._rng, self._name
        labels = {
            f"pod-security.kubernetes.io/{mode}": rng.choice(("privileged", "baseline", "restricted"))
            for mode in ("enforce", "warn")
            if rng.random() < 0.4
        }
        yield Sent(f"{name} namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        if rng.random() < 0.7:
            body = {"metadata": {"name": "r"}, "spec": {"limits": [self._range()]}}
            yield Sent(f"{name} range", "POST", f"/api/v1/namespaces/{name}/limitranges", body)
        selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
        spec = {
            "matchConstraints": {"resourceRules": rules, "namespaceSelector": selector},
            "validations": [{"expression": self._condition(2)}],
        }
        yield Sent(f"{name} policy", "POST", _POLICIES, {"metadata": {"name": name}, "spec": spec})
        bound = {"policyName": name, "validationActions": [rng.choice(("Deny", "Warn"))]}
        yield Sent(f"{name} binding", "POST", _BINDINGS, {"metadata": {"name": name}, "spec": bound})

    def asked(self) -> Iterator[Sent]:
        for number in range(_PODS):
            path = f"/api/v1/namespaces/{self._name}/pods"
            yield Sent(f"{self._name} pod {number}", "POST", path, self._pod(f"p{number}"))
        for number in range(4):
            data = {key: self._rng.choice(("", "a", "bb", "7")) for key in "abc" if self._rng.random() < 0.6}
            body = {"metadata": {"name": f"m{number}"}, "data": data}
            yield Sent(f"{self._name} data {number}", "POST", f"/api/v1/namespaces/{self._name}/configmaps", body)

    def end(self) -> Iterator[Sent]:
        yield Sent(f"{self._name} binding away", "DELETE", f"{_BINDINGS}/{self._name}")
        yield Sent(f"{self._name} policy away", "DELETE", f"{_POLICIES}/{self._name}")

    def _range(self) -> dict[str, Any]:
        """One bound on one resource: of several the real server names the faults in no order."""
        rng = self._rng
        resource = rng.choice(tuple(_AMOUNTS))
        kind, bound = rng.choice(("Container", "Pod")), rng.choice(("min", "max", "maxLimitRequestRatio", "default"))
        if bound == "maxLimitRequestRatio":
            return {"type": kind, bound: {"cpu": rng.choice(("1", "2", "5"))}}
        if bound == "default":
            return {"type": "Container", bound: {resource: rng.choice(_AMOUNTS[resource])}}
        return {"type": kind, bound: {resource: rng.choice(_AMOUNTS[resource])}}

    def _pod(self, name: str) -> dict[str, Any]:
        rng = self._rng
        spec: dict[str, Any] = {"containers": [self._container(f"c{n}") for n in range(rng.choice((1, 1, 2, 3)))]}
        if rng.random() < 0.2:
            spec["initContainers"] = [self._container("init")]
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            if rng.random() < 0.1:
                spec[key] = True
        if rng.random() < 0.3:
            spec["volumes"] = [{"name": f"v{n}", **rng.choice(_VOLUMES)} for n in range(rng.choice((1, 2)))]
        context = self._context(whole=True)
        return {"metadata": {"name": name}, "spec": {**spec, **({"securityContext": context} if context else {})}}

    def _container(self, name: str) -> dict[str, Any]:
        rng = self._rng
        found: dict[str, Any] = {"name": name, "image": "x"}
        resources: dict[str, dict[str, str]] = {}
        for resource, amounts in _AMOUNTS.items():
            low, high = sorted((rng.randrange(len(amounts)), rng.randrange(len(amounts))))
            if rng.random() < 0.5:
                resources.setdefault("requests", {})[resource] = amounts[low]
            if rng.random() < 0.5:
                resources.setdefault("limits", {})[resource] = amounts[high]
        if resources:
            found["resources"] = resources
        context = self._context(whole=False)
        if context:
            found["securityContext"] = context
        if rng.random() < 0.1:
            self._port += 1
            found["ports"] = [{"containerPort": self._port, "hostPort": self._port}]
        if rng.random() < 0.1 and name != "init":
            found["livenessProbe"] = {"tcpSocket": {"port": 1, "host": rng.choice(("h", "10.0.0.1"))}}
        return found

    def _context(self, *, whole: bool) -> dict[str, Any]:
        rng = self._rng
        drawn: dict[str, Any] = {
            "runAsNonRoot": rng.choice((True, False)),
            "runAsUser": rng.choice((0, 1000)),
            "seccompProfile": {"type": rng.choice(("RuntimeDefault", "Unconfined"))},
            "seLinuxOptions": rng.choice(({"type": "spc_t"}, {"level": "s0"}, {"role": "r"})),
        }
        if not whole:
            drawn["allowPrivilegeEscalation"] = rng.choice((True, False, False))
            added = rng.sample(_CAPABILITIES, rng.choice((0, 1, 2)))
            drawn["capabilities"] = {"drop": ["ALL"], **({"add": added} if added else {})}
        return {key: value for key, value in drawn.items() if rng.random() < 0.35}

    # Expressions

    def _condition(self, depth: int) -> str:
        rng = self._rng
        if depth and rng.random() < 0.6:
            left, right = self._condition(depth - 1), self._condition(depth - 1)
            return rng.choice(
                (f"({left} && {right})", f"({left} || {right})", f"!({left})", f"({left} ? {right} : true)")
            )
        key, other = rng.choice("abc"), rng.choice("abc")
        return rng.choice(
            (
                f"object.data.{key} == object.data.{other}",
                f"has(object.data.{key})",
                f"'{key}' in object.data",
                f"size(object.data) {rng.choice(('<', '>=', '=='))} {rng.randrange(4)}",
                f"object.data.{key}.size() % 2 == 0",
                f"int(object.data.{key}) > 3",
                f"object.data.all(k, object.data[k] != '{rng.choice(('', 'a'))}')",
                f"object.data.exists(k, k > '{key}')",
                f"object.data.?{key}.orValue('x').startsWith('{rng.choice(('a', 'x'))}')",
                "object.data.map(k, object.data[k]).join('-') != ''",
                f"10 / object.data.{key}.size() > 4",
                f"request.name.endsWith('{rng.randrange(4)}')",
            )
        )
