"""What the recorder of events remembers."""

from __future__ import annotations

import asyncio
import logging
import random

from mews.harness.clock import run_virtual
from mews.kube.clock import Clock
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.events import EventRecorder


def recorder() -> EventRecorder:
    kube = InProcessKube(fresh_store(lambda: 0.0, random.Random(1)))
    return EventRecorder(Context(kube, Clock(0.0), random.Random(1), logging.getLogger("test")), "kubelet", "host-1")


def note(events: EventRecorder, number: int) -> None:
    events.event({"kind": "Pod", "name": f"pod-{number}", "uid": f"uid-{number}"}, "Normal", "Started", "message")


def test_what_counts_for_some_minutes_is_remembered_for_some_minutes() -> None:
    async def main() -> None:
        events = recorder()
        for number in range(50):
            note(events, number)
        assert len(events._kin) == len(events._buckets) == 50
        await asyncio.sleep(601.0)
        note(events, 50)
        assert len(events._kin) == len(events._buckets) == 1

    run_virtual(main)


def test_an_object_that_has_used_up_its_events_is_remembered_until_it_may_have_all_again() -> None:
    async def main() -> None:
        events = recorder()
        for _ in range(30):
            note(events, 1)
        assert len(events._queue) == 25
        await asyncio.sleep(400.0)
        note(events, 2)
        assert len(events._buckets) == 2
        note(events, 1)  # one has been given back meanwhile
        note(events, 1)
        assert len(events._queue) == 27

    run_virtual(main)
