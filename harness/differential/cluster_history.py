"""A run as stories that can be compared: of each thing, in each of its streams, what came after what. Pure.

Times, uids and addresses are left out, and so is the order between streams: two watches, or a watch and a kubelet's
notes, are not ordered among each other on any cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from mews.harness.journal import Line

Place = tuple[str, str]
"""Thing and stream: ``("pod/default/a", "condition Ready")``."""

_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_DEVICE = re.compile(r"\b\d+-[0-9A-F]{6}\b")
_GENERATED = re.compile(r"((.+)-([0-9a-f]{6,10}))-[bcdfghjklmnpqrstvwxz2456789]{5}")
"""A pod's name that a ReplicaSet of a Deployment gave it."""
_URL = re.compile(r"\bURL https?://[^/ ]+/")
_MOVES = ("attached", "detached", "edited", "inserted", "removed", "link-down", "link-up", "down", "up")


class ClusterHistory(Struct, frozen=True):
    """One scenario on one cluster; ``ignored`` are its keys that the cluster does not honour, with the reason."""

    scenario: str
    cluster: str
    verdict: str
    reason: str = ""
    wall_s: float = 0.0
    stories: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    ignored: tuple[Mapping[str, str], ...] = ()


def stories_of(lines: Iterable[Line]) -> dict[Place, tuple[str, ...]]:
    """Return what the journal tells, by place; what is said twice in a row is said once."""
    stories: dict[Place, list[str]] = {}
    schedulers: dict[str, str] = {}
    lines = list(lines)
    names = _numbers(lines)
    numbered = _renamed({**names.pods, **names.sets})
    for name, shown in names.sets.items():
        stories[f"replicaset/{shown}", "template"] = [name.rpartition("-")[2]]
    for line in lines:
        describe = _DESCRIBERS.get(line.layer)
        if describe is None:
            continue
        for (thing, stream), item in describe(line, schedulers):
            thing, item = numbered(thing), numbered(item)
            story = stories.setdefault((thing, stream), [])
            if not story or story[-1] != item:
                story.append(item)
    return {place: tuple(story) for place, story in sorted(stories.items())}


_Items = Iterable[tuple[Place, str]]


class _Numbers(Struct):
    """Names with numbers in the place of what depends on chance, or on the whole of a template."""

    pods: dict[str, str] = field(default_factory=dict)
    sets: dict[str, str] = field(default_factory=dict)


def _numbers(lines: Iterable[Line]) -> _Numbers:
    """Return that of what a Deployment adds to its ReplicaSets' names, and these to their pods': in the order of
    creation."""
    found = _Numbers()
    counts: dict[str, int] = {}

    def number(of: str) -> str:
        counts[of] = counts.get(of, 0) + 1
        return f"{of}-#{counts[of]}"

    for line in lines:
        name = line.actor.rpartition("/")[2]
        match = _GENERATED.fullmatch(name) if line.layer == "api" and line.event == "created" else None
        if match is not None and name not in found.pods:
            if match[1] not in found.sets:
                found.sets[match[1]] = number(match[2])
            found.pods[name] = number(found.sets[match[1]])
    return found


def _renamed(names: Mapping[str, str]) -> Callable[[str], str]:
    if not names:
        return lambda text: text
    pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
    return lambda text: pattern.sub(lambda name: names[name[0]], text)


def _api(line: Line, schedulers: dict[str, str]) -> _Items:
    fields = line.fields
    if line.event == "event":
        event_text = _plain(f"{fields['type']} {fields['reason']}: {fields['message']}")
        yield (fields["object"], f"events of {line.actor.partition('/')[0]}"), event_text
        return
    match line.event:
        case "condition":
            stream, item = f"condition {fields['type']}", _worded(fields["status"], fields.get("reason"))
        case "allocatable":
            stream, item = f"allocatable {fields['resource']}", str(fields["new"])
        case "annotations":
            values = fields["annotations"].items()
            stream, item = "annotations", " ".join(f"{'-' if value is None else '+'}{name}" for name, value in values)
        case "taints":
            stream, item = "taints", " ".join(fields["taints"]) or "none"
        case "unschedulable":
            stream, item = "states", "cordoned" if fields["unschedulable"] else "uncordoned"
        case _:
            stream, item = "states", _state(line, schedulers)
    yield (line.actor, stream), item
    if line.event == "created":
        # A node that was there before offers what one that comes up offers a moment later.
        offered = {name: count for name, count in (fields.get("allocatable") or {}).items() if "/" in name}
        yield from (((line.actor, f"allocatable {name}"), str(count)) for name, count in offered.items())


def _state(line: Line, schedulers: dict[str, str]) -> str:
    """``schedulers``: pod uid -> who is to bind it, as its creation told."""
    fields = line.fields
    match line.event:
        case "bound":
            return f"bound to {fields['node']} by {schedulers.get(fields['uid'], 'somebody')}"
        case "phase":
            return _worded(fields["phase"], fields.get("reason"))
        case "created" if "scheduler" in fields:
            schedulers[fields["uid"]] = fields["scheduler"]
            return "created"
        case _:
            return line.event


def _kubelet(line: Line, schedulers: dict[str, str]) -> _Items:
    fields = line.fields
    match line.event:
        case "registered":
            yield (line.actor, f"plugin of {fields['resource']}"), "registered"
        case "devices":
            counts = f"{len(fields['healthy'])} healthy, {len(fields['unhealthy'])} unhealthy"
            yield (line.actor, f"plugin of {fields['resource']}"), counts
        case "allocated":
            what = f"{len(fields['devices'])} {fields['resource']} for {fields['container']}"
            yield (f"pod/{fields['pod']}", "kubelet"), f"allocated {what}"
        case "container-started":
            yield (f"pod/{fields['pod']}", "kubelet"), f"started {fields['container']}"
        case "rejected":
            yield (f"pod/{fields['pod']}", "kubelet"), _plain(f"rejected, {fields['reason']}: {fields['message']}")
        case "pod-ended":
            yield (f"pod/{fields['pod']}", "kubelet"), "ended"


def _chassis(line: Line, schedulers: dict[str, str]) -> _Items:
    if line.event not in _MOVES:
        return
    fields = line.fields
    hosts = f" {fields.get('old_host') or 'free'} -> {fields.get('host') or 'free'}" if "device" in fields else ""
    yield (line.actor, "table"), f"{line.event}{hosts}"


def _component(line: Line, schedulers: dict[str, str]) -> _Items:
    cause = f": {line.fields['cause']}" if "cause" in line.fields else ""
    yield (line.actor, "life"), _plain(line.event + cause)


_DESCRIBERS: Mapping[str, Callable[[Line, dict[str, str]], _Items]] = {
    "api": _api,
    "kubelet": _kubelet,
    "chassis": _chassis,
    "component": _component,
}


def _worded(value: Any, reason: Any) -> str:
    return f"{value} ({reason})" if reason else str(value)


def _plain(text: str) -> str:
    return _URL.sub(r"URL http://HOST/", _DEVICE.sub("DEVICE", _UID.sub("UID", text)))
