"""Invariant 7, over feeds told well and badly."""

import random

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.invariants.watches import Watches, missing
from mews.harness.watch_feed import LISTED, Feed, WatchRecord
from mews.kube.api.resources import CONFIGMAPS, PODS
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store


def pod(version, uid="u1"):
    return {"metadata": {"name": "a", "namespace": "default", "uid": uid, "resourceVersion": str(version)}}


def sight(kind, version, old=None, new=None, stream=2):
    return WatchRecord(PODS, kind, "default/a", old, new, version, stream)


def found(*sights):
    watches = Watches()
    return [breach.what for one in sights for breach in watches.on_watch(one)]


def test_growing_versions_break_nothing():
    assert (
        found(
            sight(LISTED, 3, None, pod(3), stream=1),
            sight("MODIFIED", 5, pod(3), pod(5)),
            sight("BOOKMARK", 5),
            sight("DELETED", 6, pod(5), None),
            sight("ADDED", 9, None, pod(9, "u2")),
        )
        == []
    )


def test_a_version_that_goes_back_is_told():
    assert len(found(sight("MODIFIED", 5, pod(3), pod(5)), sight("MODIFIED", 4, pod(5), pod(4)))) == 2


def test_a_version_told_twice_on_one_watch_is_told():
    again = sight("DELETED", 5, pod(5), None)
    assert found(sight("MODIFIED", 5, pod(3), pod(5)), again) == [
        "pods default/a came with version 5 after 5 on one watch"
    ]


def test_a_new_watch_may_begin_where_it_likes():
    assert found(sight("MODIFIED", 9, pod(3), pod(9)), sight("MODIFIED", 10, pod(9), pod(10), stream=3)) == []


def test_a_change_of_what_was_never_added_is_a_gap():
    assert found(sight("MODIFIED", 5, None, pod(5))) == [
        "pods default/a came as MODIFIED though it was never added: a gap"
    ]


def test_an_object_added_twice_lost_its_deletion():
    assert found(sight("ADDED", 5, pod(3), pod(5))) == [
        "pods default/a was added though it was there: its deletion was not told"
    ]


def test_a_last_list_shows_what_the_watch_did_not_tell():
    assert list(missing("pods", {"default/a": pod(5)}, {"default/a": pod(5)})) == []
    assert [breach.key for breach in missing("pods", {"default/a": pod(6)}, {"default/a": pod(5)})]
    assert [breach.key for breach in missing("pods", {}, {"default/a": pod(5)})]
    assert [breach.key for breach in missing("pods", {"default/a": pod(5)}, {})]


def test_the_embedded_store_keeps_the_law_through_a_thousand_writes():
    async def main():
        import asyncio

        clock, rng = virtual_clock(), random.Random(7)
        kube = InProcessKube(fresh_store(clock.now, rng))
        watches, breaches = Watches(), []
        feed = Feed(kube, CONFIGMAPS, lambda one: breaches.extend(watches.on_watch(one)))
        task = asyncio.create_task(feed.run())
        await feed.synced()
        names = [f"c{number}" for number in range(8)]
        there = set()
        for number in range(1000):
            name = rng.choice(names)
            if name not in there:
                await kube.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")
                there.add(name)
            elif rng.random() < 0.2:
                await kube.delete(CONFIGMAPS, name, namespace="default")
                there.discard(name)
            else:
                await kube.patch(CONFIGMAPS, name, {"data": {"n": str(number)}}, namespace="default")
        for _ in range(20):
            await asyncio.sleep(0)
        listed = {
            f"default/{obj['metadata']['name']}": obj
            for obj in (await kube.list(CONFIGMAPS, namespace="default")).items
        }
        seen = {key: obj for key, obj in feed.objects.items() if key.startswith("default/")}
        breaches += missing("configmaps", listed, seen)
        task.cancel()
        return breaches, len(listed)

    breaches, count = run_virtual(main)
    assert breaches == []
    assert count > 0
