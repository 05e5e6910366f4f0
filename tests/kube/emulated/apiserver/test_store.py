from __future__ import annotations

import asyncio
import gc
import json
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import ConflictError, ForbiddenError, GoneError, NotFoundError, TooManyRequestsError
from mews.kube.api.objects import Object, is_deleting, name_of, version_of
from mews.kube.api.resources import CONFIGMAPS, NAMESPACES, NODES, PODS, Resource
from mews.kube.client.informer import Informer
from mews.kube.client.port import DeleteOptions, EventType
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.store.store import Store

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")


def pod(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


def run(check: Callable[[Store, InProcessKube], Awaitable[None]], **options: int) -> None:
    async def main() -> None:
        store = fresh_store(virtual_clock().now, random.Random(1), **options)
        await check(store, InProcessKube(store))

    run_virtual(main)


def watchers(store: Store) -> int:
    return sum(shelf.watchers() for _, shelf in store.shelves())


def test_a_fresh_store_holds_what_a_fresh_cluster_holds() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        names = [name_of(obj) for obj in (await kube.list(NAMESPACES)).items]
        assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]

    run(check)


def test_a_watch_from_before_the_history_is_gone() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        start = (await kube.list(CONFIGMAPS)).resource_version
        for number in range(6):
            await kube.create(CONFIGMAPS, {"metadata": {"name": f"c{number}"}}, namespace="default")
        with pytest.raises(GoneError):
            await anext(kube.watch(CONFIGMAPS, resource_version=start))
        store.compact()
        now = (await kube.list(CONFIGMAPS)).resource_version
        stream = kube.watch(CONFIGMAPS, resource_version=now)
        await kube.create(CONFIGMAPS, {"metadata": {"name": "later"}}, namespace="default")
        assert name_of((await anext(stream)).object) == "later"

    run(check, history=4)


def test_a_watch_lets_go_when_it_is_closed_cancelled_or_forgotten() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        async def reader() -> None:
            async for _ in kube.watch(PODS, field_selector="spec.nodeName=n1"):
                pass

        task = asyncio.create_task(reader())
        closed = kube.watch(CONFIGMAPS, resource_version="")
        await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        await anext(closed)
        await asyncio.sleep(1)
        assert watchers(store) == 2
        await closed.aclose()  # type: ignore[attr-defined]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        gc.collect()
        assert watchers(store) == 0

    run(check)


def test_a_disconnected_watch_ends_cleanly_after_what_it_was_owed() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        stream = kube.watch(CONFIGMAPS)
        await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        first = await anext(stream)
        await kube.create(CONFIGMAPS, {"metadata": {"name": "b"}}, namespace="default")
        store.disconnect()
        assert [name_of(first.object)] + [name_of(event.object) async for event in stream] == ["a", "b"]

    run(check)


def test_an_informer_survives_disconnection_and_compaction() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        informer = Informer(kube, CONFIGMAPS)
        task = asyncio.create_task(informer.run())
        await informer.synced()
        for name in "abc":
            store.compact()
            store.disconnect()
            await kube.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")
        await asyncio.sleep(1)
        assert [name_of(obj) for obj in informer.items()] == ["a", "b", "c"]
        task.cancel()

    run(check)


def test_what_is_given_is_copied_and_what_is_read_is_shared() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        body: Object = {"metadata": {"name": "a", "labels": {"x": "1"}}}
        await kube.create(CONFIGMAPS, body, namespace="default")
        body["metadata"]["labels"]["x"] = "2"
        first = await kube.get(CONFIGMAPS, "a", namespace="default")
        assert first["metadata"]["labels"] == {"x": "1"}
        assert first is (await kube.list(CONFIGMAPS)).items[0]
        await kube.patch(CONFIGMAPS, "a", {"metadata": {"labels": {"x": "3"}}}, namespace="default")
        assert first["metadata"]["labels"] == {"x": "1"}

    run(check)


def test_versions_grow_over_all_resources_and_watches_have_no_gap() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        chance = random.Random(7)
        start = (await kube.list(CONFIGMAPS)).resource_version
        stream = kube.watch(CONFIGMAPS, resource_version=start)
        alive: dict[str, int] = {}
        for number in range(300):
            name = f"c{chance.randrange(20)}"
            if name not in alive:
                await kube.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")
                alive[name] = number
            elif chance.random() < 0.5:
                await kube.patch(CONFIGMAPS, name, {"data": {"n": str(number)}}, namespace="default")
            else:
                await kube.delete(CONFIGMAPS, name, namespace="default")
                del alive[name]
        seen: set[str] = set()
        last = int(start)
        for _ in range(300):
            event = await anext(stream)
            assert version_of(event.object) == last + 1
            last = version_of(event.object)
            assert (event.type is EventType.ADDED) == (name_of(event.object) not in seen)
            (seen.discard if event.type is EventType.DELETED else seen.add)(name_of(event.object))
        assert seen == set(alive)

    run(check)


def test_a_deleted_namespace_waits_for_its_pods_and_takes_nothing_new() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        await kube.create(NAMESPACES, {"metadata": {"name": "team"}})
        await kube.create(CONFIGMAPS, {"metadata": {"name": "c"}}, namespace="team")
        held = {"metadata": {"name": "held", "finalizers": ["x.test/hold"]}}
        await kube.create(CONFIGMAPS, held, namespace="team")
        await kube.create(PODS, pod("p"), namespace="team")
        await kube.bind("team", "p", "n1")
        going = await kube.delete(NAMESPACES, "team")
        assert going["status"]["phase"] == "Terminating"
        assert len((await kube.list(CONFIGMAPS, namespace="team")).items) == 2  # pods go first
        assert {each["status"] for each in (await kube.get(NAMESPACES, "team"))["status"]["conditions"]} == {"False"}
        with pytest.raises(ForbiddenError) as caught:
            await kube.create(CONFIGMAPS, {"metadata": {"name": "d"}}, namespace="team")
        assert caught.value.message == (
            'configmaps "d" is forbidden: unable to create new content in namespace team because it is being terminated'
        )
        await kube.delete(PODS, "p", namespace="team", options=DeleteOptions(grace_period_s=0))
        [left] = (await kube.list(CONFIGMAPS, namespace="team")).items
        assert (left["metadata"]["name"], is_deleting(left)) == ("held", True)
        conditions = (await kube.get(NAMESPACES, "team"))["status"]["conditions"]
        assert [each["message"] for each in conditions if each["status"] == "True"] == [
            "Some resources are remaining: configmaps. has 1 resource instances",
            "Some content in the namespace has finalizers remaining: x.test/hold in 1 resource instances",
        ]
        await kube.patch(CONFIGMAPS, "held", {"metadata": {"finalizers": None}}, namespace="team")
        with pytest.raises(NotFoundError):
            await kube.get(NAMESPACES, "team")

    run(check)


def test_grace_can_be_shortened_and_not_lengthened() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        await kube.create(PODS, pod("p"), namespace="default")
        await kube.bind("default", "p", "n1")
        for asked_s, left_s in ((20, 20), (50, 20), (5, 5), (-1, 1)):
            going = await kube.delete(PODS, "p", namespace="default", options=DeleteOptions(grace_period_s=asked_s))
            assert going["metadata"]["deletionGracePeriodSeconds"] == left_s
        with pytest.raises(ConflictError, match="pod p is being deleted, cannot be assigned to a host"):
            await kube.bind("default", "p", "n2")

    run(check)


def test_a_disruption_budget_refuses_an_eviction() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        body = {**pod("p"), "metadata": {"name": "p", "labels": {"app": "x"}}}
        await kube.create(PODS, body, namespace="default")
        await kube.bind("default", "p", "n1")
        await kube.patch(PODS, "p", {"status": {"phase": "Running"}}, namespace="default", subresource="status")
        budget = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 1}}
        await kube.create(BUDGETS, budget, namespace="default")
        with pytest.raises(TooManyRequestsError):
            await kube.evict("default", "p")
        status = {"status": {"observedGeneration": 1, "disruptionsAllowed": 1}}
        await kube.patch(BUDGETS, "b", status, namespace="default", subresource="status")
        await kube.evict("default", "p")
        assert (await kube.get(PODS, "p", namespace="default"))["metadata"]["deletionTimestamp"]
        said = (await kube.get(BUDGETS, "b", namespace="default"))["status"]
        assert (said["disruptionsAllowed"], list(said["disruptedPods"])) == (0, ["p"])

    run(check)


@pytest.mark.parametrize(
    ("policy", "healthy", "goes"),
    [
        (None, 1, True),
        (None, 0, False),
        ("IfHealthyBudget", 1, True),
        ("IfHealthyBudget", 0, False),
        ("AlwaysAllow", 0, True),
    ],
)
def test_a_pod_that_is_not_ready_goes_by_its_budget_s_policy(policy: str | None, healthy: int, goes: bool) -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        body = {**pod("p"), "metadata": {"name": "p", "labels": {"app": "x"}}}
        await kube.create(PODS, body, namespace="default")
        await kube.bind("default", "p", "n1")
        await kube.patch(PODS, "p", {"status": {"phase": "Running"}}, namespace="default", subresource="status")
        spec = {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 1}
        spec |= {"unhealthyPodEvictionPolicy": policy} if policy else {}
        await kube.create(BUDGETS, {"metadata": {"name": "b"}, "spec": spec}, namespace="default")
        status = {"observedGeneration": 1, "disruptionsAllowed": 0, "desiredHealthy": 1, "currentHealthy": healthy}
        await kube.patch(BUDGETS, "b", {"status": status}, namespace="default", subresource="status")
        if goes:
            await kube.evict("default", "p")
        else:
            with pytest.raises(TooManyRequestsError):
                await kube.evict("default", "p")
        status = (await kube.get(BUDGETS, "b", namespace="default"))["status"]
        assert not status.get("disruptedPods")

    run(check)


SCRIPT = """
import json, random
from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.store.store import Store
from mews.kube.api.resources import NAMESPACES, PODS
async def main():
    store = fresh_store(virtual_clock().now, random.Random(3))
    kube = InProcessKube(store)
    log = []
    store.listen(lambda kind, old, new: log.append([kind.plural, new]))
    await kube.create(NAMESPACES, {"metadata": {"name": "team"}})
    for number in range(5):
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await kube.create(PODS, {"metadata": {"generateName": "p-"}, "spec": spec}, namespace="team")
    await kube.delete(NAMESPACES, "team")
    print(json.dumps(log))
run_virtual(main)
import sys
print([name for name in ("aiohttp", "grpc", "flask", "kubernetes", "yaml") if name in sys.modules])
"""


def test_the_same_seed_writes_the_same_bytes_and_imports_no_web() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert outputs[0] == outputs[1]
    written, imported = outputs[0].splitlines()
    assert len(json.loads(written)) >= 12
    assert imported == "[]"


def test_a_write_costs_the_same_under_two_hundred_watches_as_under_two() -> None:
    """In calls, not in seconds: a store that asked each watch whether a pod is its own would make thousands more."""

    def calls(watches: int) -> int:
        counted = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal counted
            counted += event == "call"

        async def check(store: Store, kube: InProcessKube) -> None:
            async def kubelet(number: int) -> None:
                async for _ in kube.watch(PODS, field_selector=f"spec.nodeName=n{number}"):
                    pass

            tasks = [asyncio.create_task(kubelet(number)) for number in range(watches)]
            await asyncio.sleep(1)
            sys.setprofile(count)
            try:
                for number in range(20):
                    name = f"p{number}"
                    status = {"status": {"phase": "Running"}}
                    await kube.create(PODS, pod(name), namespace="default")
                    await kube.bind("default", name, f"n{number % 2}")
                    await kube.patch(PODS, name, status, namespace="default", subresource="status")
                    await kube.delete(PODS, name, namespace="default")
            finally:
                sys.setprofile(None)
            for task in tasks:
                task.cancel()

        run(check)
        return counted

    few = calls(2)
    assert few > 1000
    assert calls(200) < 1.2 * few


def test_nodes_are_listed_by_whether_they_may_be_scheduled() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        await kube.create(NODES, {"metadata": {"name": "a"}})
        await kube.create(NODES, {"metadata": {"name": "b"}, "spec": {"unschedulable": True}})
        for wanted, names in (("false", ["a"]), ("true", ["b"])):
            found = await kube.list(NODES, field_selector=f"spec.unschedulable={wanted}")
            assert [name_of(obj) for obj in found.items] == names

    run(check)
