"""Why something is stuck: from the object that a check is about along what it waits for, to where that stops.

A pod that has a node waits for its kubelet, one that is to go to a node (KubeComp) for the devices that are asked for,
a device for whoever hands it out and for the chassis. Each link is the last line about one thing of that chain;
the last link is the line after which nobody did anything more about it. Pure: from journal lines alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mews.harness.journal import Line

_ASKED = ("asked", "asked-back", "consented", "consent-ended", "refused", "move-begun", "move-ended")
"""What is said of a device on its way to a pod (``mews.systems.kubecomp.journal``)."""
_REFUSED = "refused"
_TARGET = "dst_node"
"""The annotation that names the node to which devices are brought for a pod (contract kubecomp.md section 2)."""
_SCHEDULED = ("bound", "phase")
_HARDWARE = ("chassis", "host")
_OF_THE_RUN = ("step", "fault", "invariant")
"""Layers that tell of a run, and not of what its components do."""


def chain_of(lines: Sequence[Line], about: Sequence[str]) -> tuple[Line, ...]:
    """Return the links for the first of these things that has any, in their order; () where there is none."""
    for thing in about:
        links = _links(lines, thing)
        if links:
            return tuple(sorted(links, key=_number))
    return ()


def stop_of(chain: Sequence[Line]) -> Line | None:
    """Return where a chain stops: at the first refusal in it, else at the first complaint of what runs on a node, else
    at its last link."""
    refused = next((line for line in chain if line.event == _REFUSED), None)
    complained = next((line for line in chain if _complains(line)), None)
    return refused or complained or (chain[-1] if chain else None)


def moved(lines: Sequence[Line], gpuid: str) -> Line | None:
    """Return the line that set off the last move of a device: what made a pod wait for it; where no pod does, what
    asked for it, or the operation's begin."""
    begun = _last(lines, lambda line: line.event in ("attach-begun", "detach-begun") and line.fields["gpuid"] == gpuid)
    if begun is None:
        return None
    before = [line for line in lines if line.number <= begun.number]
    asked = _last(before, lambda line: line.event in ("asked", "move-begun") and line.fields.get("gpuid") == gpuid)
    if asked is None:
        return begun
    pod = asked.fields.get("pod")
    reported = _last(before, lambda line: _target(line) != "" and pod in (None, line.actor.partition("/")[2]))
    return reported or asked


def _links(lines: Sequence[Line], thing: str) -> list[Line]:
    last = _last(lines, lambda line: _names(line, thing))
    if last is None:
        return []
    links = [last]
    complaint = next((line for line in lines if _complains(line) and _is_of(str(line.fields["object"]), thing)), None)
    if complaint is not None and complaint is not last:
        links.append(complaint)
    reported = next((line for line in lines if line.actor == thing and _target(line) != ""), None)
    bound = _last(lines, lambda line: line.actor == thing and line.event in _SCHEDULED)
    if reported is not None and bound is None:
        links += _devices(lines, reported)
    elif thing.startswith("node/"):
        links += _kubelet(lines, thing.partition("/")[2], last)
    elif bound is last and "node" in bound.fields:
        links += _kubelet(lines, bound.fields["node"], bound)
    return links


def _devices(lines: Sequence[Line], reported: Line) -> Iterator[Line]:
    """Yield them from a pod that waits for devices to the last word about one of them."""
    after = [line for line in lines if line.number > reported.number]
    asked = _last(_without_renewals(after), lambda line: line.event in _ASKED and "gpuid" in line.fields)
    refused = next((line for line in after if line.event == _REFUSED and "gpuid" in line.fields), None)
    if refused is not None and refused is not asked:
        yield refused
    if asked is None:
        return
    yield asked
    gpuid = asked.fields["gpuid"]
    names = {
        gpuid,
        *(str(line.fields["uuid"]) for line in lines if line.fields.get("gpuid") == gpuid and _is_row(line)),
    }
    names |= {uuid for line in lines if line.event == "table" for uuid in _uuids(line, gpuid)}
    where = asked.fields.get("node")
    done = _last(
        after, lambda line: line.layer not in _OF_THE_RUN and _mentions(line.fields, names) and _owner(line, where)
    )
    if done is not None and done.number > asked.number:
        yield done


def _without_renewals(lines: Sequence[Line]) -> Sequence[Line]:
    """Return them without consents that are given again to the same request: they keep it alive, and are no news."""
    seen: set[tuple[str, str]] = set()
    news = []
    for line in lines:
        key = line.actor, str(line.fields.get("request"))
        if line.event == "consented" and key in seen:
            continue
        seen |= {key} if line.event == "consented" else set()
        news.append(line)
    return news


def _complains(line: Line) -> bool:
    return line.event == "event" and line.fields.get("type") == "Warning" and "/" in line.actor


def _is_of(pod: str, thing: str) -> bool:
    """Return whether that pod is the thing, or one that it made, by its name."""
    kind, _, name = thing.partition("/")
    return pod == thing or (kind not in ("pod", "node") and pod.startswith(f"pod/{name}-"))


def _owner(line: Line, node: str | None) -> bool:
    """Return whether the line is of the hardware, or of who hands devices out on that node: what follows from it in
    lists and numbers of the kubelet tells nothing new."""
    return line.layer in _HARDWARE or (line.layer == "api" and line.actor.partition("/")[2] == node)


def _kubelet(lines: Sequence[Line], node: str, since: Line) -> Iterator[Line]:
    """Yield what became of the kubelet that is to do it."""
    kubelet = f"kubelet/{node}"
    found = _last(lines, lambda line: line.layer == "component" and line.actor == kubelet)
    if found is not None and found.event != "started":
        yield found
    reported = _last(lines, lambda line: line.layer == "kubelet" and line.actor == kubelet)
    if reported is not None and reported.number > since.number:
        yield reported


def _names(line: Line, thing: str) -> bool:
    if line.layer in _OF_THE_RUN:
        return False
    return thing in (line.actor, str(line.fields.get("object", "")), f"pod/{line.fields.get('pod', '')}")


def _target(line: Line) -> str:
    return str((line.fields.get("annotations") or {}).get(_TARGET) or "") if line.event == "annotations" else ""


def _is_row(line: Line) -> bool:
    return line.layer in _HARDWARE and "uuid" in line.fields


def _uuids(line: Line, gpuid: str) -> Iterator[str]:
    for row in line.fields.get("devices", {}).values():
        if row.get("gpuid") == gpuid:
            yield str(row.get("uuid"))


def _mentions(value: Any, names: set[str]) -> bool:
    if isinstance(value, str):
        return value in names
    if isinstance(value, Mapping):
        return any(name in names or _mentions(item, names) for name, item in value.items())
    return isinstance(value, list | tuple) and any(_mentions(item, names) for item in value)


def _last(lines: Sequence[Line], holds: Callable[[Line], bool]) -> Line | None:
    return next((line for line in reversed(lines) if holds(line)), None)


def _number(line: Line) -> int:
    return line.number
