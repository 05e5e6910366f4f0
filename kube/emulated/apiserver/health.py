"""``/healthz``, ``/livez`` and ``/readyz``: each check under kube-apiserver's name, made when it is asked for (upstream
apiserver pkg/server/healthz)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aiohttp import web
from multidict import MultiMapping

from mews.kube.api.resources import NAMESPACES, SERVICES
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.wire.call import headers, text

FACES = ("healthz", "livez", "readyz")
_Check = Callable[[Store], bool]


def _has(group: str, plural: str, name: str, namespace: str = "") -> _Check:
    def check(store: Store) -> bool:
        kind = store.kinds.find(group, "v1", plural)
        return kind is not None and store.find(kind, namespace, name) is not None

    return check


def _answers(store: Store) -> bool:
    return store.find(store.kinds.of(NAMESPACES), "", "default") is not None


_OWN: Mapping[str, _Check] = {
    "ping": lambda store: True,
    "log": lambda store: True,
    "poststarthook/start-system-namespaces-controller": _has("", "namespaces", "kube-system"),
    "poststarthook/start-legacy-token-tracking-controller": _has(
        "", "configmaps", "kube-apiserver-legacy-service-account-token-tracking", "kube-system"
    ),
    "poststarthook/rbac/bootstrap-roles": _has("rbac.authorization.k8s.io", "clusterroles", "cluster-admin"),
    "poststarthook/scheduling/bootstrap-system-priority-classes": _has(
        "scheduling.k8s.io", "priorityclasses", "system-cluster-critical"
    ),
    "poststarthook/priority-and-fairness-config-producer": _has(
        "flowcontrol.apiserver.k8s.io", "flowschemas", "catch-all"
    ),
    "poststarthook/bootstrap-controller": lambda store: (
        store.find(store.kinds.of(SERVICES), "default", "kubernetes") is not None
    ),
    "poststarthook/start-kubernetes-service-cidr-controller": _has("networking.k8s.io", "servicecidrs", "kubernetes"),
    "poststarthook/apiservice-registration-controller": _has("apiregistration.k8s.io", "apiservices", "v1."),
}
"""What can be looked for. All other checks ask whether the store answers."""

_NAMES = (
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
    "autoregister-completion",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
    "shutdown",
)
"""Those of kube-apiserver 1.34.2, in its order (GET /readyz?verbose)."""
_READY = frozenset({"etcd-readiness", "informer-sync", "shutdown"})
_PLAIN = frozenset({"ping", "log", "etcd", "autoregister-completion", *_READY})


def _checks(face: str) -> Mapping[str, _Check]:
    names = (name for name in _NAMES if face == "readyz" or name not in _READY)
    paths = (name if name in _PLAIN else f"poststarthook/{name}" for name in names)
    return {path: _OWN.get(path, _answers) for path in paths}


_CHECKS = {face: _checks(face) for face in FACES}


def paths() -> list[str]:
    """Return the paths of all checks, as GET / lists them."""
    return [path for face, checks in _CHECKS.items() for path in (f"/{face}", *(f"/{face}/{name}" for name in checks))]


def answer(store: Store, face: str, rest: Sequence[str], query: MultiMapping[str]) -> web.Response:
    """``ok``, or all checks one by one where one fails or ``verbose`` is asked for; one of them by its path."""
    checks = _CHECKS[face]
    if rest:
        check = checks.get("/".join(rest))
        if check is None:
            return text("404 page not found\n", 404)
        well = check(store)
        return text("ok") if well else text("internal server error: reason withheld\n", 500)
    skipped = set(query.getall("exclude", []))
    found = {name: name in skipped or check(store) for name, check in checks.items()}
    well = all(found.values())
    if well and "verbose" not in query:
        return _text("ok", 200)
    lines = [_line(name, good, name in skipped) for name, good in found.items()]
    unknown = sorted(skipped - set(checks))
    if unknown:
        shown = ", ".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {shown}")
    lines.append(f"{face} check {'passed' if well else 'failed'}")
    return _text("\n".join(lines) + "\n", 200 if well else 500)


def _line(name: str, well: bool, skipped: bool) -> str:
    if skipped:
        return f"[+]{name} excluded: ok"
    return f"[+]{name} ok" if well else f"[-]{name} failed: reason withheld"


def _text(body: str, status: int) -> web.Response:
    return web.Response(text=body, status=status, headers={**headers(), "X-Content-Type-Options": "nosniff"})
