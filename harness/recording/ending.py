"""What the scenario checks at its end: what the real cluster came to, and, where a move went wrong there, what it
should have come to. Such a check fails for as long as the bug is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from mews.harness.recording.causes import STUCK_S, RecordedView
from mews.harness.recording.histories import PodHistory
from mews.harness.recording.replayed import StackNames


class FinalCheck(Struct, frozen=True):
    """One check and its comment. ``red``: the recorded cluster itself did not fulfil it."""

    check: dict[str, Any]
    why: tuple[str, ...] = ()
    red: bool = False


def final_checks(view: RecordedView, names: StackNames, *, wrong: bool) -> Iterator[FinalCheck]:
    """Yield those of each pod by itself, then of the hosts. ``wrong``: whether anything is known to have gone wrong."""
    for pod in view.pods:
        if pod.deleted is None and pod.owner is None:
            yield from _of_pod(view, pod, names)
    if not view.is_made_up and view.cabling.hosts:
        cabled = [node.name for node in view.nodes if view.cabling.ports_of(node.name)]
        counts = {host: view.count_on(host, view.ended) for host in cabled}
        if not wrong:
            yield FinalCheck({"hosts": counts})


def _of_pod(view: RecordedView, pod: PodHistory, names: StackNames) -> Iterator[FinalCheck]:
    place = {"name": pod.name, "namespace": pod.namespace}
    if pod.phase == "Pending" and not pod.node:
        yield from _of_pending(view, pod, place)
        return
    yield FinalCheck({"pod": {**place, "phase": pod.phase}})
    count = pod.asks_for(view.resource)
    if pod.phase == "Running" and count:
        named = {"pod": pod.name, "namespace": pod.namespace}
        lost = view.held_on(pod.node, view.ended) > view.count_on(pod.node, view.ended) and not view.is_made_up
        why = (f"at the end, {pod.node} had fewer devices than its pods held",) if lost else ()
        check = {"gpus": {**named, "count": count, "resource": names.resource, "log": False}}
        yield FinalCheck(check, why, red=lost)


def _of_pending(view: RecordedView, pod: PodHistory, place: dict[str, Any]) -> Iterator[FinalCheck]:
    waited = view.ended - pod.created
    words = f"pod {pod.key} was Pending for {waited:.0f} s, until the end"
    if pod.pending:
        words = f"{words}: {' '.join(pod.pending.split())}"
    event = view.events.get(pod.key)
    reported = (f"the last event about it: {event}",) if event else ()
    if not fits_the_pool(view, pod):
        yield FinalCheck({"pod": {**place, "phase": "Pending"}}, (words, *reported))
    elif waited >= STUCK_S:
        why = (words, *reported, "the pool had enough devices for it: this check fails for as long as the bug is there")
        yield FinalCheck({"pod": {**place, "phase": "Running"}}, why, red=True)


def fits_the_pool(view: RecordedView, pod: PodHistory) -> bool:
    """Return whether all devices that were not lost are enough for this pod and for all that run."""
    asked = pod.asks_for(view.resource)
    if not asked:
        return False
    there = sum(len(box.devices) - len(box.missing_at_end()) for box in view.chassis)
    held = sum(each.asks_for(view.resource) for each in view.pods if each.holds_at(view.ended))
    return asked + held <= there
