"""Drawn pods and templates, and drawn changes of them by PUT, resize and ephemeralcontainers: what they ask for in
parts and as a whole, the annotations that mean something, and what they say of their system."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.differential.generated import definitions
from tests.differential.model import Answer, Sent

Body = dict[str, Any]

_PODS = "/api/v1/namespaces/default/pods"
_TEMPLATES = "/api/v1/namespaces/default/podtemplates"
_CHANGES = 4
_AMOUNTS = {
    "cpu": ("0", "100m", "500m", "1", "2"),
    "memory": ("0", "64Mi", "100M", "1Gi"),
    "hugepages-2Mi": ("2Mi", "4Mi"),
    "example.com/x": ("1", "2"),
    "ephemeral-storage": ("1Gi",),
}
_EXACT = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
_MORE = {"cpu": "2", "memory": "2Gi"}
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_ANNOTATIONS = {
    "kubernetes.io/config.mirror": ("x",),
    "controller.kubernetes.io/pod-deletion-cost": ("1", "-5", "+1", "08", "", "99999999999"),
    "scheduler.alpha.kubernetes.io/tolerations": (
        "",
        "[]",
        '[{"key":"a","operator":"Bad"}]',
        '[{"operator":"Exists"}]',
    ),
    "seccomp.security.alpha.kubernetes.io/pod": ("unconfined", "bad", "localhost/../x", "localhost/a"),
    f"{_SECCOMP}c0": ("runtime/default", "other"),
    f"{_APP_ARMOR}c0": ("runtime/default", "foo", "localhost/x"),
    f"{_APP_ARMOR}nobody": ("",),
}
_PROFILES = ({"type": "Unconfined"}, {"type": "RuntimeDefault"}, {"type": "Localhost", "localhostProfile": "x"})


def cases(seeds: Iterable[int]) -> tuple[Sent, ...]:
    """A pod or template of each seed, and a pod's changes, one after the other."""
    return tuple(case for seed in seeds for case in _of(seed))


def _of(seed: int) -> Iterator[Sent]:
    rng = random.Random(f"pod {seed}")
    name = f"drawn-{seed}"
    pod = _pod(rng, name)
    if rng.random() < 0.1:
        yield Sent(f"{seed}: template", "POST", _TEMPLATES, {"metadata": {"name": name}, "template": pod})
        return
    yield Sent(f"{seed}: pod", "POST", _PODS, pod)
    for number in range(_CHANGES):
        part = rng.choice(("resize",) * 6 + ("ephemeralcontainers",) * 2 + ("",) * 2)
        where = f"{_PODS}/{name}"
        change = _changed(_CHANGED[part], f"{seed} {number}")
        path = f"{where}/{part}" if part else where
        yield Sent(f"{seed}: change {number} {part}", "PUT", path, edits=(where, change))


def _changed(change: Callable[[random.Random, Body], None], seed: str) -> Callable[[Any], Any]:
    def changed(pod: Any) -> Any:
        if pod["kind"] != "Pod":  # it was refused
            return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "none"}}
        made: Body = copy.deepcopy(pod)
        change(random.Random(seed), made)
        return made

    return changed


# What is drawn


def _pod(rng: random.Random, name: str) -> Body:
    metadata: Body = {"name": name}
    spec: Body = {"containers": [_container(rng, f"c{n}") for n in range(rng.choice((1, 1, 2)))]}
    inits = [_container(rng, f"i{n}") for n in range(rng.choice((0, 0, 1, 2)))]
    for container in inits:
        if rng.random() < 0.5:
            container["restartPolicy"] = "Always"
    if inits:
        spec["initContainers"] = inits
    if rng.random() < 0.3:
        spec["resources"] = _resources(rng, others=0.1)
    if rng.random() < 0.3:
        keys = rng.sample(sorted(_ANNOTATIONS), rng.choice((1, 1, 2)))
        metadata["annotations"] = {key: rng.choice(_ANNOTATIONS[key]) for key in keys}
    if rng.random() < 0.2:
        metadata["labels"] = {"app": "a"}
        spec |= _beside(rng)
    if rng.random() < 0.2:
        spec["nodeName"] = "n"
    if rng.random() < 0.1:
        spec["os"] = {"name": rng.choice(("windows", "windows", "linux", "other"))}
    _secure(rng, spec)
    return {"metadata": metadata, "spec": spec}


def _beside(rng: random.Random) -> Body:
    """Terms and constraints that go by the pod's own labels."""
    selector = rng.choice(({"labelSelector": {"matchLabels": {"x": "y"}}}, {"labelSelector": {}}, {}))
    keys = rng.choice((["app"], ["other"], ["app", "other"]))
    term = {"topologyKey": "zone", **selector, rng.choice(("matchLabelKeys", "mismatchLabelKeys")): keys}
    kind = rng.choice(("podAffinity", "podAntiAffinity"))
    required, preferred = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
    terms: Body = rng.choice(({required: [term]}, {preferred: [{"weight": 1, "podAffinityTerm": term}]}))
    spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **selector}
    constraint: Body = {"topologySpreadConstraints": [{**spread, "matchLabelKeys": keys}]}
    return rng.choice(({"affinity": {kind: terms}}, constraint))


def _secure(rng: random.Random, spec: Body) -> None:
    own: tuple[Body, ...] = ({"hostPID": True}, {"hostUsers": True}, {"shareProcessNamespace": False})
    if rng.random() < 0.08:
        spec |= rng.choice(own)
    if rng.random() < 0.25:
        spec["securityContext"] = rng.choice(
            ({"seccompProfile": rng.choice(_PROFILES)}, {"fsGroup": 1, "runAsUser": 2})
        )
    if rng.random() < 0.15:
        profile = {rng.choice(("seccompProfile", "appArmorProfile")): rng.choice(_PROFILES)}
        others: Body = {"privileged": False, "capabilities": {}, "windowsOptions": {}}
        spec["containers"][0]["securityContext"] = rng.choice((profile, profile, others))


def _container(rng: random.Random, name: str) -> Body:
    found: Body = {"name": name, "image": "x"}
    if rng.random() < 0.85:
        found["resources"] = _resources(rng, others=0.3)
    if rng.random() < 0.15:
        policy = rng.choice(("NotRequired", "RestartContainer"))
        found["resizePolicy"] = [{"resourceName": rng.choice(("cpu", "memory")), "restartPolicy": policy}]
    return found


def _resources(rng: random.Random, *, others: float) -> Body:
    """Of containers, or of a pod; sometimes so that it is guaranteed."""
    names = ["cpu", "memory", *(name for name in tuple(_AMOUNTS)[2:] if rng.random() < others)]
    found: Body = {}
    for part, chance in (("limits", 0.75), ("requests", 0.6)):
        if rng.random() < chance:
            found[part] = {name: rng.choice(_AMOUNTS[name]) for name in names if rng.random() < 0.6}
    kind = rng.random()
    if kind < 0.25:
        return copy.deepcopy(_EXACT)
    if kind < 0.5 and "limits" in found:
        found["requests"] = dict(found["limits"])
    return found


# What is changed


def _resize(rng: random.Random, pod: Body) -> None:
    spec = pod["spec"]
    containers = rng.choice((spec["containers"], spec.get("initContainers") or spec["containers"]))
    container, kind = rng.choice(containers), rng.random()
    if kind < 0.3:
        container["resources"] = _resources(rng, others=0.3)
    elif kind < 0.7:
        for amounts in (container["resources"].get(part, {}) for part in ("requests", "limits")):
            amounts |= {name: more for name, more in _MORE.items() if name in amounts}
    elif kind < 0.75:
        container["name"] = "other"
    elif kind < 0.8:
        containers.pop()
    elif kind < 0.85:
        container["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    elif kind < 0.9:
        container.pop("resources")
    elif kind < 0.95:
        container["image"], spec["nodeSelector"] = "other", {"a": "b"}
    else:
        spec["resources"] = _resources(rng, others=0.0)


def _attach(rng: random.Random, pod: Body) -> None:
    containers, kind = pod["spec"].setdefault("ephemeralContainers", []), rng.random()
    name = f"e{rng.randrange(100)}"
    if kind < 0.6 or not containers:
        containers.append({"name": name, "image": "y"})
    elif kind < 0.7:
        containers.append({"name": "c0", "image": "y", "ports": [{"containerPort": 1}]})
    elif kind < 0.85:
        containers.pop()
    else:
        containers[0]["image"] = "z"


def _annotate(rng: random.Random, pod: Body) -> None:
    annotations = pod["metadata"].setdefault("annotations", {})
    key = rng.choice(("kubernetes.io/config.mirror", f"{_APP_ARMOR}c0", "controller.kubernetes.io/pod-deletion-cost"))
    if rng.random() < 0.4:
        annotations.pop(key, None)
    else:
        annotations[key] = rng.choice(("1", "other", "runtime/default"))


_CHANGED = {"resize": _resize, "ephemeralcontainers": _attach, "": _annotate}


def compared(answer: Answer) -> Answer:
    """Without the order of Go's maps, and without the dumps of its internal structs."""
    found = definitions.compared(answer)
    body = found.get("body")
    if isinstance(body, dict) and body.get("kind") == "Status":
        body["message"] = str(body.get("message")).partition("\n")[0]
        for cause in (body.get("details") or {}).get("causes") or ():
            cause["message"] = cause["message"].partition("\n")[0]
    return found
