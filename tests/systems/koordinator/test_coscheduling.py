"""Koordinator's own gangs: annotations and PodGroups, with the values that upstream takes for bad ones."""

import json

import pytest

from mews.systems.koordinator.devices import NodeDeviceReport
from mews.systems.koordinator.gang_terms import GangTerms, duration_s, gang_id, terms_of_group, terms_of_pod
from mews.systems.koordinator.names import (
    GANG_GROUPS,
    GANG_MATCH_POLICY,
    GANG_MIN,
    GANG_MODE,
    GANG_NAME,
    GANG_TOTAL,
    GANG_WAIT,
    MIN_AVAILABLE,
    POD_GROUP,
    POD_GROUP_NAME,
    POD_GROUPS,
)
from tests.systems.koordinator.cluster import DeviceWorld, a_while, gpus, play

TWO = {GANG_NAME: "g", GANG_MIN: "2"}
GPU_1 = {"nvidia.com/gpu": 1}


def bare(annotations=None, labels=None):
    return {"metadata": {"name": "p", "namespace": "n", "annotations": annotations or {}, "labels": labels or {}}}


@pytest.mark.parametrize(
    ("annotations", "labels", "key"),
    [
        ({GANG_NAME: "a"}, {}, "n/a"),
        ({GANG_NAME: "a"}, {POD_GROUP_NAME: "b"}, "n/b"),
        ({GANG_NAME: "a"}, {POD_GROUP: "c", POD_GROUP_NAME: "b"}, "n/c"),
        ({}, {POD_GROUP: "c", MIN_AVAILABLE: "2"}, ""),  # a gang of the design, on one node
        ({GANG_MIN: "2"}, {}, ""),
        ({}, {}, ""),
    ],
)
def test_a_gang_is_named_by_labels_before_annotations(annotations, labels, key):
    assert gang_id(bare(annotations, labels)) == key


PLAIN = GangTerms("n/g", 2, 2, group=("n/g",))


@pytest.mark.parametrize(
    ("annotations", "terms"),
    [
        (TWO, PLAIN),
        ({GANG_NAME: "g"}, None),
        ({**TWO, GANG_MIN: "two"}, None),
        ({**TWO, GANG_MIN: "99999999999"}, None),
        ({**TWO, GANG_TOTAL: "1"}, PLAIN),
        ({**TWO, GANG_TOTAL: "x"}, PLAIN),
        ({**TWO, GANG_TOTAL: "5"}, GangTerms("n/g", 2, 5, group=("n/g",))),
        ({**TWO, GANG_TOTAL: "0"}, GangTerms("n/g", 2, 0, group=("n/g",))),
        ({**TWO, GANG_MODE: "NonStrict"}, GangTerms("n/g", 2, 2, "NonStrict", group=("n/g",))),
        ({**TWO, GANG_MODE: "strict"}, PLAIN),
        ({**TWO, GANG_WAIT: "1m30s"}, GangTerms("n/g", 2, 2, wait_s=90.0, group=("n/g",))),
        ({**TWO, GANG_WAIT: "-3s"}, PLAIN),
        ({**TWO, GANG_WAIT: "30"}, PLAIN),
        ({**TWO, GANG_MATCH_POLICY: "only-waiting"}, GangTerms("n/g", 2, 2, "Strict", "only-waiting", group=("n/g",))),
        ({**TWO, GANG_MATCH_POLICY: "never"}, PLAIN),
        ({**TWO, GANG_GROUPS: '["n/g", "n/h"]'}, GangTerms("n/g", 2, 2, group=("n/g", "n/h"))),
        ({**TWO, GANG_GROUPS: "n/g,n/h"}, PLAIN),
        ({**TWO, GANG_GROUPS: "[1]"}, PLAIN),
    ],
)
def test_terms_are_read_as_upstream_reads_them(annotations, terms):
    assert terms_of_pod(bare(annotations)) == terms


def test_a_pod_group_brings_its_own_terms():
    group = {
        "metadata": {"name": "g", "namespace": "n", "annotations": {GANG_MODE: "NonStrict"}},
        "spec": {"minMember": 3, "scheduleTimeoutSeconds": 0},
    }
    assert terms_of_group(group) == GangTerms("n/g", 3, 3, "NonStrict", wait_s=0.0, group=("n/g",))
    group["spec"]["scheduleTimeoutSeconds"] = -1
    assert terms_of_group(group).wait_s is None


@pytest.mark.parametrize(
    ("text", "span_s"), [("1h2m3.5s", 3723.5), ("500ms", 0.5), ("0", 0.0), ("", None), ("5", None), ("s", None)]
)
def test_spans_are_go_s(text, span_s):
    assert duration_s(text) == span_s


async def nodes_of_one_gpu(world: DeviceWorld, *names: str) -> None:
    for name in names:
        await world.node_with(NodeDeviceReport(name, gpus(name, 1)))


def test_a_gang_of_annotations_waits_until_it_has_enough_pods_and_may_be_on_several_nodes() -> None:
    async def story(world: DeviceWorld) -> None:
        await nodes_of_one_gpu(world, "m", "n")
        await world.koordinator()
        await world.ask("a", GPU_1, annotations=TWO)
        await a_while(30)
        assert await world.node_of("a") == ""
        wanted = "gang child pod not collect enough, gangName: default/g, podName: default/a"
        assert wanted in await world.message("a")
        await world.ask("b", GPU_1, annotations=TWO)
        await world.all_bound(["a", "b"])
        assert sorted(await world.nodes_of("a", "b")) == ["m", "n"]
        # It was satisfied once: a pod that comes later waits for nobody.
        await nodes_of_one_gpu(world, "o")
        await world.ask("c", GPU_1, annotations=TWO)
        await world.until_bound("c")

    play(story)


def test_none_of_a_strict_gang_is_bound_where_too_few_fit_and_its_devices_are_free() -> None:
    async def story(world: DeviceWorld) -> None:
        await nodes_of_one_gpu(world, "n")
        await world.koordinator()
        for name in "ab":
            await world.ask(name, GPU_1, annotations=TWO)
        await a_while(60)
        assert await world.nodes_of("a", "b") == ["", ""]
        await world.ask("other", GPU_1)
        await world.until_bound("other")

    play(story)


def test_one_of_a_gang_that_is_not_strict_keeps_its_device_for_as_long_as_it_may_wait() -> None:
    async def story(world: DeviceWorld) -> None:
        await nodes_of_one_gpu(world, "n")
        await world.koordinator()
        for name in "ab":
            await world.ask(name, GPU_1, annotations={**TWO, GANG_MODE: "NonStrict", GANG_WAIT: "1h"})
        await a_while(60)
        await world.ask("other", GPU_1)
        await a_while(60)
        assert await world.nodes_of("a", "b", "other") == ["", "", ""]
        await world.remove("other")
        await nodes_of_one_gpu(world, "m")
        await world.all_bound(["a", "b"])

    play(story)


def test_a_pod_that_waited_as_long_as_its_gang_says_gives_its_device_back() -> None:
    async def story(world: DeviceWorld) -> None:
        await nodes_of_one_gpu(world, "n")
        await world.koordinator(gang_wait_s=3600.0)
        for name in "ab":
            await world.ask(name, GPU_1, annotations={**TWO, GANG_MODE: "NonStrict", GANG_WAIT: "5s"})
        await a_while(2)
        await world.remove("b")
        await world.ask("other", GPU_1)
        await a_while(60)
        await world.until_bound("other")

    play(story)


def test_gangs_of_one_group_go_together() -> None:
    async def story(world: DeviceWorld) -> None:
        await nodes_of_one_gpu(world, "m", "n")
        await world.koordinator()
        group = json.dumps(["default/one", "default/two"])
        await world.ask("a", GPU_1, annotations={GANG_NAME: "one", GANG_MIN: "1", GANG_GROUPS: group})
        await a_while(20)
        assert await world.node_of("a") == ""
        await world.ask("b", GPU_1, annotations={GANG_NAME: "two", GANG_MIN: "1", GANG_GROUPS: group})
        await world.all_bound(["a", "b"])

    play(story)


def test_a_gang_without_a_number_stays_pending_in_upstream_s_words() -> None:
    async def story(world: DeviceWorld) -> None:
        await nodes_of_one_gpu(world, "n")
        await world.koordinator()
        await world.ask("a", GPU_1, annotations={GANG_NAME: "g", GANG_MIN: "many"})
        await a_while(30)
        assert "gang has not init, gangName: default/g, podName: default/a" in await world.message("a")
        # The first pod that says it right says it for all.
        await nodes_of_one_gpu(world, "m")
        await world.ask("b", GPU_1, annotations={GANG_NAME: "g", GANG_MIN: "1"})
        await world.all_bound(["a", "b"])

    play(story)


def test_a_pod_group_holds_its_pods_until_it_is_there_and_has_its_members() -> None:
    async def story(world: DeviceWorld) -> None:
        await nodes_of_one_gpu(world, "m", "n")
        await world.koordinator()
        for name in "ab":
            await world.ask(name, GPU_1, labels={POD_GROUP: "g"})
        await a_while(30)
        assert "gang has not init, gangName: default/g" in await world.message("a")
        group = {"metadata": {"name": "g"}, "spec": {"minMember": 2}}
        await world.kube.create(POD_GROUPS, group, namespace="default")
        await world.all_bound(["a", "b"])

    play(story)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"labels": {"quota.scheduling.koordinator.sh/name": "q"}}, "elastic quotas are not part of this scheduler"),
        (
            {"annotations": {"scheduling.koordinator.sh/reservation-affinity": "{}"}},
            "annotation scheduling.koordinator.sh/reservation-affinity: reservations are not part of this scheduler",
        ),
    ],
)
def test_quotas_and_reservations_are_refused_in_words(more, words) -> None:
    async def story(world: DeviceWorld) -> None:
        await nodes_of_one_gpu(world, "n")
        await world.koordinator()
        await world.ask("a", GPU_1, **more)
        await a_while(30)
        assert await world.node_of("a") == ""
        assert words in await world.message("a")

    play(story)
