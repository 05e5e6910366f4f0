"""The laws on what GPU Share's device plugin shows and notes: lines that break them, and lines that must not."""

from __future__ import annotations

import pytest

from mews.systems.gpushare import names
from tests.harness.invariants.law_runs import Said
from tests.systems.gpushare.test_laws import (
    assigned,
    bound,
    created,
    found,
    given,
    gpus,
    ledgers,
    listed,
    noted,
    pod,
    promises,
)


def decided(t: float, uid: str, **changed: str | None) -> Said:
    """The annotations of a binding: 6 of G0, which has 10."""
    notes: dict[str, str | None] = {
        names.UUID: "G0",
        names.INDEX: "0",
        names.POD_MEMORY: "6",
        names.DEVICE_MEMORY: "10",
        names.ASSUME_TIME: "1",
        names.ASSIGNED: "false",
    }
    return noted(t, uid, **{**notes, **changed})


BOUND = [gpus(0), created(5, "a"), promises(5, {"a": ("G0", 6)}), bound(5, "a"), decided(5, "a")]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param(BOUND, [], id="as it was decided"),
        pytest.param([*BOUND[:4], decided(5, "a", **{names.POD_MEMORY: "5"})], [(4, 1)], id="less than it asks for"),
        pytest.param([*BOUND[:4], decided(5, "a", **{names.DEVICE_MEMORY: "9"})], [(4, 3)], id="of a smaller GPU"),
        pytest.param(
            [*BOUND[1:4], gpus(4), decided(5, "a", **{names.DEVICE_MEMORY: "9"})], [], id="of one that has just come"
        ),
        pytest.param([*BOUND, noted(6, "a", **{names.ASSUME_TIME: "2"})], [(5, 4)], id="decided anew"),
        pytest.param([*BOUND, assigned(6, "a")], [], id="called assigned"),
        pytest.param(
            [*BOUND, noted(6, "a", **{names.ASSUME_TIME: None}), noted(7, "a", **{names.ASSUME_TIME: "2"})],
            [],
            id="taken back in between",
        ),
        pytest.param(
            [created(5, "a"), decided(5, "a"), noted(6, "a", **{names.ASSUME_TIME: "2"}), bound(6, "a")],
            [],
            id="before it is bound",
        ),
        pytest.param(
            [created(5, "a", annotated=[names.INDEX]), bound(5, "a"), decided(5, "a", **{names.POD_MEMORY: "5"})],
            [],
            id="by its maker",
        ),
    ],
)
def test_annotations_say_what_was_decided(said: list[Said], named: list[tuple[int, int]]) -> None:
    assert found(1020, said) == named


def comes(t: float, uid: str) -> list[Said]:
    return [created(t, uid), bound(t, uid), given(t, uid, "G0-_-0")]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([*comes(5, "a"), assigned(5.2, "a")], [], id="after its rest"),
        pytest.param([*comes(5, "a"), assigned(5.1, "a")], [(3, 1)], id="before it"),
        pytest.param([*comes(5, "a"), *comes(5, "b"), assigned(5.1, "a")], [], id="with another one"),
        pytest.param([*comes(4, "b"), *comes(5, "a"), assigned(5.1, "a")], [], id="while another waits"),
        pytest.param(
            [*comes(1, "b"), assigned(1.2, "b"), *comes(5, "a"), assigned(5.1, "a")], [(7, 5)], id="after a rest"
        ),
        pytest.param(
            [*comes(1, "b"), assigned(1.2, "b"), pod(4, "b", "condition"), *comes(5, "a"), assigned(5.1, "a")],
            [],
            id="woken by something else",
        ),
        pytest.param(
            [(4.0, "gpushare-device-plugin/n1", "started", {}), *comes(5, "a"), assigned(5.1, "a")],
            [],
            id="just begun",
        ),
        pytest.param(
            [*comes(1, "b"), given(1, "b", "G0-_-1"), assigned(1.2, "b"), *comes(5, "a"), assigned(5.1, "a")],
            [],
            id="beside one of several containers",
        ),
    ],
)
def test_a_plugin_at_rest_looks_after_its_rest(said: list[Said], named: list[tuple[int, int]]) -> None:
    assert found(1021, said) == named


def devices(t: float, healthy: dict[str, int], unhealthy: dict[str, int] | None = None) -> Said:
    parts = (healthy, unhealthy or {})
    both = [[f"{gpu}-_-{n}" for gpu, count in part.items() for n in range(count)] for part in parts]
    fields = {"resource": names.MEMORY_RESOURCE, "healthy": both[0], "unhealthy": both[1]}
    return (t, "kubelet/n1", "devices", fields)


LATER: Said = (20.0, "gpushare/n2", "unhealthy", {"indices": []})


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([gpus(0), listed(0, "G0", "G1")], [], id="alike"),
        pytest.param([gpus(0), devices(1, {"G0": 10, "G1": 9})], [(1, 0)], id="fewer slices"),
        pytest.param([gpus(0), listed(1, "G0")], [(1, 0)], id="fewer GPUs"),
        pytest.param([gpus(0), listed(1, "G0"), listed(2, "G0", "G1")], [], id="for a moment"),
        pytest.param([gpus(0), listed(1, "G0"), listed(9, "G0", "G1")], [(1, 0)], id="for too long"),
        pytest.param([gpus(0), devices(1, {"G0": 10}, {"G1": 10})], [(1, 0)], id="one is ill for the kubelet"),
        pytest.param(
            [ledgers(0, "unhealthy", indices=[1]), gpus(0, "G1"), devices(0, {"G0": 10}, {"G1": 10})], [], id="marked"
        ),
        pytest.param(
            [ledgers(0, "withheld", gpus=["G1"]), gpus(0, "G1"), devices(0, {"G0": 10}, {"G1": 10})], [], id="withheld"
        ),
        pytest.param([gpus(0, "G1"), devices(0, {"G0": 10}, {"G1": 10})], [(1, 0)], id="for no reason"),
        pytest.param(
            [gpus(0), listed(0, "G0", "G1"), ledgers(1, "unhealthy", indices=[0])], [(2, 0)], id="marked and offered"
        ),
        pytest.param([gpus(0), (0.5, "kubelet/n1", "killed", {}), listed(1, "G0")], [], id="while the kubelet is away"),
        pytest.param(
            [gpus(0), listed(1, "G0"), (19.0, "kubelet/n2", "started", {})], [(1, 0)], id="since long before a start"
        ),
        pytest.param(
            [gpus(0), listed(1, "G0"), (3.0, "kubelet/n2", "started", {})], [(1, 0)], id="since before a start"
        ),
    ],
)
def test_what_a_node_shows_is_what_its_kubelet_lists(said: list[Said], named: list[tuple[int, int]]) -> None:
    assert found(1022, [*said, LATER]) == named


def test_what_a_node_shows_is_not_judged_in_the_moment_of_a_start() -> None:
    assert found(1022, [gpus(0), listed(1, "G0"), (19.5, "kubelet/n1", "started", {})]) == [(1, 0)]
    assert found(1022, [gpus(0), listed(1, "G0"), (3.0, "kubelet/n1", "started", {}), (6.5, *LATER[1:])]) == []


def over_use(t: float, uid: str, used: int, asked: int = 5) -> Said:
    message = f"uses {used} MiB of GPU memory and asked for {asked} MiB: no limit is enforced"
    fields = {"type": "Warning", "reason": "GPUMemoryOverUse", "object": f"pod/default/{uid}", "message": message}
    return (t, "gpushare-device-plugin/n1", "event", fields)


def starts(t: float, uid: str, gpu: str = "G0") -> Said:
    fields = {"pod": f"default/{uid}", "uid": uid, "container": "main", "env": {names.VISIBLE: gpu}}
    return (t, "kubelet/n1", "container-started", fields)


ONCE = [starts(1, "a"), over_use(2, "a", 12)]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([*ONCE, over_use(3, "b", 12)], [], id="another pod"),
        pytest.param([*ONCE, over_use(3, "a", 13)], [(2, 1)], id="again"),
        pytest.param([*ONCE, starts(2, "b"), over_use(3, "a", 6)], [(3, 1)], id="with less that is too much still"),
        pytest.param([*ONCE, starts(2, "b"), starts(2, "c"), over_use(3, "a", 12)], [], id="after less beside two"),
        pytest.param(
            [*ONCE, starts(2, "b", "G1"), starts(2, "c", "G1"), over_use(3, "a", 12)], [(4, 1)], id="elsewhere"
        ),
        pytest.param([*ONCE, starts(2, "a"), over_use(3, "a", 13)], [], id="after a new start"),
        pytest.param(
            [*ONCE, (2.0, "gpushare-device-plugin/n1", "started", {}), over_use(3, "a", 13)], [], id="by a new plugin"
        ),
        pytest.param([*ONCE, (2.0, "host/n1", "xid", {"uuid": "G0"}), over_use(3, "a", 13)], [], id="after an XID"),
        pytest.param([*ONCE, pod(2, "a", "deleted"), over_use(3, "a", 13)], [], id="of a pod of that name"),
    ],
)
def test_a_pod_that_uses_too_much_is_reported_once(said: list[Said], named: list[tuple[int, int]]) -> None:
    assert found(1023, said) == named


STRUCK = promises(7, {}, struck=("a",))


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([*BOUND, starts(6, "a"), STRUCK], [(6, 2)], id="one that runs"),
        pytest.param([*BOUND, STRUCK, starts(8, "a")], [(5, 2)], id="one that is about to"),
        pytest.param([*BOUND, STRUCK, starts(8, "a", "no-gpu-has-6GiB-to-run")], [], id="one that was told of none"),
        pytest.param([*BOUND, STRUCK, promises(8, {"a": ("G0", 6)}), starts(8, "a")], [], id="promised again"),
        pytest.param(
            [*BOUND, starts(6, "a"), pod(7, "a", "phase", phase="Succeeded", reason=""), STRUCK],
            [],
            id="one that is over",
        ),
        pytest.param([*BOUND[:3], starts(6, "a"), STRUCK], [], id="one that was never bound"),
    ],
)
def test_the_promise_to_a_pod_that_lives_is_not_struck_out(said: list[Said], named: list[tuple[int, int]]) -> None:
    assert found(1024, said) == named
