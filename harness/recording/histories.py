"""What became of each pod and each node, from the sightings of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from msgspec import Struct

from mews.harness.recording.observations import Object, ObjectSighting
from mews.harness.recording.reduction import CHOSEN, LEFT_OUT
from mews.kube.api.objects import condition_of, containers_of, init_containers_of, requests_of
from mews.kube.api.objects import seconds as seconds_of
from mews.kube.api.pod_requests import request_of


class PodHistory(Struct, frozen=True):
    """One pod from its creation to the end of the recording. Times are Unix seconds; None: it did not come to that.

    ``ended``: when its containers had ended by themselves, ``deleted``: when somebody asked for its deletion.
    ``chosen``: the nodes to which its system moved devices for it; ``pending``: why it was not scheduled, in the
    scheduler's words.
    """

    namespace: str
    name: str
    obj: Object
    created: float
    node: str = ""
    bound: float | None = None
    started: float | None = None
    ended: float | None = None
    deleted: float | None = None
    phase: str = "Pending"
    exit_code: int = 0
    chosen: tuple[str, ...] = ()
    pending: str = ""

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def owner(self) -> tuple[str, str] | None:
        """Kind and name of the controller that made it."""
        owners = self.obj["metadata"].get("ownerReferences") or ()
        return next(((str(each["kind"]), str(each["name"])) for each in owners if each.get("controller")), None)

    @property
    def left_out(self) -> Sequence[str]:
        """Fields and annotations that are not looked at."""
        return list(self.obj.get(LEFT_OUT) or ())

    def asks_for(self, resource: str) -> int:
        """Return how many devices it requests."""
        return request_of(self.obj, resource) if resource else 0

    def resources(self) -> set[str]:
        """Return names of the extended resources that it requests."""
        containers = (*containers_of(self.obj), *init_containers_of(self.obj))
        return {name for each in containers for name in requests_of(each) if is_extended(name)}

    def holds_at(self, t: float) -> bool:
        """Return whether it was on a node, and neither ended nor deleted."""
        last = min((each for each in (self.ended, self.deleted) if each is not None), default=None)
        return self.bound is not None and self.bound <= t and (last is None or t < last)

    def waits_at(self, t: float) -> bool:
        """Return whether it existed and was not running."""
        last = min((each for each in (self.started, self.ended, self.deleted) if each is not None), default=None)
        return self.created <= t and (last is None or t <= last)


class NodeHistory(Struct, frozen=True):
    """One node. ``offered``: when it offered how much of each extended resource, ``ready``: when its Ready condition
    changed, in order."""

    name: str
    obj: Object
    offered: Mapping[str, tuple[tuple[float, int], ...]]
    ready: tuple[tuple[float, bool], ...]

    def offers(self, resource: str, t: float | None = None) -> int:
        """Return how much of it at that time; None: at the end of the recording."""
        changes = self.offered.get(resource, ())
        found = changes[0][1] if changes else 0
        for at, count in changes:
            if t is not None and at > t:
                break
            found = count
        return found


def is_extended(name: str) -> bool:
    """Return whether it is a resource that a device plugin announces."""
    return "/" in name and not name.startswith(("kubernetes.io/", "hugepages-", "attachable-volumes-"))


def pod_histories(sightings: Iterable[ObjectSighting], ignored: Iterable[str]) -> list[PodHistory]:
    """Return those of every pod outside the ignored namespaces, in the order of their creation."""
    found = [
        _pod_history(seen)
        for (kind, namespace, *_), seen in _by_object(sightings).items()
        if kind == "Pod" and namespace not in set(ignored)
    ]
    return sorted(found, key=lambda pod: (pod.created, pod.key))


def node_histories(sightings: Iterable[ObjectSighting]) -> list[NodeHistory]:
    """Return those of every node, by name."""
    found = [_node_history(seen) for (kind, *_), seen in _by_object(sightings).items() if kind == "Node"]
    return sorted({node.name: node for node in found}.values(), key=lambda node: natural(node.name))


def last_events(sightings: Iterable[ObjectSighting]) -> dict[str, str]:
    """Pod -> what the latest event about it reports, a warning rather than another."""
    found: dict[str, tuple[tuple[bool, float], str]] = {}
    for seen in sightings:
        about = _mapping(seen.obj.get("involvedObject") or seen.obj.get("regarding"))
        if seen.key[0] != "Event" or about.get("kind") != "Pod" or seen.gone:
            continue
        pod = f"{about.get('namespace', 'default')}/{about.get('name', '')}"
        text = f"{seen.obj.get('reason', '')}: {seen.obj.get('message') or seen.obj.get('note') or ''}"
        rank = seen.obj.get("type") == "Warning", moment_of(seen.obj) or 0.0
        if pod not in found or rank >= found[pod][0]:
            found[pod] = rank, " ".join(text.split())
    return {pod: text for pod, (_, text) in found.items()}


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key by which host-2 comes before host-10."""
    parts: list[tuple[int, int, str]] = []
    digits = ""
    for letter in f"{text}\0":
        if letter.isdecimal() and letter.isascii():
            digits += letter
            continue
        if digits:
            parts.append((0, int(digits), ""))
            digits = ""
        parts.append((1, 0, letter))
    return tuple(parts)


def moment_of(obj: Object) -> float | None:
    """Return the latest time that an object's own stamps name: it was seen then, or later."""
    return max(_stamps(obj), default=None)


def _stamps(value: Any) -> Iterable[float]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if isinstance(each, str) and (str(key).endswith(("Time", "Timestamp", "At"))):
                found = stamp(each)
                if found is not None:
                    yield found
            else:
                yield from _stamps(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _stamps(each)


def stamp(text: Any) -> float | None:
    """Unix seconds of a time of Kubernetes; None for anything else."""
    try:
        return seconds_of(str(text)) if text else None
    except ValueError:
        return None


def _by_object(sightings: Iterable[ObjectSighting]) -> dict[tuple[str, str, str, str], list[ObjectSighting]]:
    """What a log names without a UID is the latest object of that name."""
    found: dict[tuple[str, str, str, str], list[ObjectSighting]] = {}
    named: dict[tuple[str, str, str], tuple[str, str, str, str]] = {}
    for seen in sorted(sightings, key=lambda each: (not each.key[3], _moment(each))):
        key = seen.key if seen.key[3] else named.get(seen.key[:3], seen.key)
        named[seen.key[:3]] = key
        found.setdefault(key, []).append(seen)
    for each in found.values():
        each.sort(key=_moment)
    return found


def is_of_one_chassis(known: Set[tuple[str, str]], rows: Set[tuple[str, str]]) -> bool:
    """Return whether two listings, as pairs of device and UUID, are of one chassis: without a listing, they are."""
    return not known or not rows or not known.isdisjoint(rows)


def _moment(seen: ObjectSighting) -> float:
    return seen.at if seen.at is not None else moment_of(seen.obj) or 0.0


def _pod_history(seen: Sequence[ObjectSighting]) -> PodHistory:
    whole = [each for each in seen if (each.obj.get("spec") or {}).get("containers")] or list(seen)
    last = whole[-1].obj
    metadata, status = last["metadata"], last.get("status") or {}
    created = stamp(metadata.get("creationTimestamp"))
    gone = next((_moment(each) for each in seen if each.gone), None)
    asked = stamp(metadata.get("deletionTimestamp"))
    grace = float((last.get("spec") or {}).get("terminationGracePeriodSeconds") or 0)
    deleted = min((t for t in (None if asked is None else asked - grace, gone) if t is not None), default=None)
    phase = str(status.get("phase") or "Pending")
    scheduled = condition_of(last, "PodScheduled") or {}
    states = [_mapping(each.get("state")) for each in status.get("containerStatuses") or ()]
    started = [_first(state, "startedAt") for state in states]
    finished = [stamp((state.get("terminated") or {}).get("finishedAt")) for state in states]
    node = str((last.get("spec") or {}).get("nodeName") or "")
    bound = stamp(scheduled.get("lastTransitionTime")) if node else None
    running = max((t for t in started if t is not None), default=None)
    over = max((t for t in finished if t is not None), default=None)
    return PodHistory(
        namespace=str(metadata.get("namespace") or "default"),
        name=str(metadata["name"]),
        obj=last,
        created=created if created is not None else _moment(seen[0]),
        node=node,
        bound=bound if bound is not None or not node else running or created,
        started=running if phase != "Pending" else None,
        ended=over if phase in ("Succeeded", "Failed") else None,
        deleted=deleted,
        phase=phase,
        exit_code=max((int((state.get("terminated") or {}).get("exitCode") or 0) for state in states), default=0),
        chosen=tuple(dict.fromkeys(str(each.obj[CHOSEN]) for each in seen if each.obj.get(CHOSEN))),
        pending=str(scheduled.get("message") or "") if not node else "",
    )


def _first(state: Mapping[str, Any], name: str) -> float | None:
    return next((t for part in state.values() if (t := stamp(_mapping(part).get(name))) is not None), None)


def _node_history(seen: Sequence[ObjectSighting]) -> NodeHistory:
    offered: dict[str, list[tuple[float, int]]] = {}
    ready: list[tuple[float, bool]] = []
    for each in seen:
        at = _moment(each)
        status = each.obj.get("status") or {}
        for name, quantity in (status.get("allocatable") or {}).items():
            if is_extended(name) and str(quantity).isdecimal():
                _note(offered.setdefault(name, []), at, int(quantity))
        condition = condition_of(each.obj, "Ready")
        if condition is not None:
            changed = stamp(condition.get("lastTransitionTime"))
            _note(ready, at if changed is None else changed, condition.get("status") == "True")
    last = seen[-1].obj
    return NodeHistory(
        str(last["metadata"]["name"]), last, {name: tuple(each) for name, each in offered.items()}, tuple(ready)
    )


def _note(changes: list[tuple[float, Any]], at: float, value: Any) -> None:
    if not changes or changes[-1][1] != value:
        changes.append((at, value))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
