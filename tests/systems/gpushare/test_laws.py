"""The laws of GPU Share's protocol: streams that they must report, streams that they must not, and planted faults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from mews.harness.scenario.stack import Stack
from mews.kube.system.facility import Facility
from mews.kube.system.invariant import Breach, ClusterObjects
from mews.kube.system.journal import Line
from mews.systems.gpushare import extender, ledger, names
from mews.systems.gpushare.allocations import NodeAllocations
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.invariants import MemoryAsked
from mews.systems.gpushare.journal import config_map_news, node_news
from mews.systems.gpushare.laws import FOREIGN_PLUGIN, PLUGIN, SEED_MATCH, laws
from mews.systems.gpushare.promise_books import PromiseBooks
from tests.harness.invariants.law_runs import (
    ROOT,
    PlantedRow,
    Said,
    breaches,
    check_found,
    each_planted,
    named,
    numbers,
    played,
)

MEMORY = names.MEMORY_RESOURCE


def found(number: int, said: Iterable[Said], **config: Any) -> list[tuple[int | None, int | None]]:
    """What that law says of the stream, the others taken in beside it."""
    law = next(law for law in laws(GpuShareConfig(**config)) if law.number == number)
    return numbers(breaches(law, said))


def ledgers(t: float, event: str, **fields: Any) -> Said:
    return (t, "gpushare/n1", event, fields)


def gpus(t: float, *unusable: str) -> Said:
    return ledgers(t, "gpus", gpus={"G0": 10, "G1": 10}, unusable=list(unusable))


def promises(t: float, made: dict[str, tuple[str, int]], struck: tuple[str, ...] = ()) -> Said:
    rows = {uid: {"pod": f"default/{uid}", "gpu": gpu, "memory": memory} for uid, (gpu, memory) in made.items()}
    return ledgers(t, "promises", made=rows, struck=list(struck))


def pod(t: float, uid: str, event: str, **fields: Any) -> Said:
    return (t, f"pod/default/{uid}", event, {"uid": uid, **fields})


def created(t: float, uid: str, asks: int = 6, **fields: Any) -> Said:
    return pod(t, uid, "created", requests={MEMORY: asks}, **fields)


def bound(t: float, uid: str) -> Said:
    return pod(t, uid, "bound", node="n1")


def noted(t: float, uid: str, **notes: str | None) -> Said:
    return pod(t, uid, "annotations", annotations=notes)


def on(t: float, uid: str, gpu: str) -> Said:
    return noted(t, uid, **{names.UUID: gpu, names.INDEX: gpu[1:], names.ASSIGNED: "false"})


def assigned(t: float, uid: str) -> Said:
    return noted(t, uid, **{names.ASSIGNED: "true"})


def allocated(t: float, uid: str, count: int) -> Said:
    fields = {"pod": f"default/{uid}", "uid": uid, "container": "main", "resource": MEMORY}
    return (t, "kubelet/n1", "allocated", {**fields, "devices": [f"G0-_-{n}" for n in range(count)]})


def over(t: float, uid: str) -> Said:
    return pod(t, uid, "phase", phase="Succeeded", reason="")


def lives(uid: str, gpu: str = "G0", memory: int = 6, t: float = 1.0) -> list[Said]:
    """A pod from its creation until it is called assigned."""
    first = [created(t, uid, memory), promises(t, {uid: (gpu, memory)}), bound(t, uid), on(t, uid, gpu)]
    return [*first, allocated(t, uid, memory), assigned(t, uid)]


def listed(t: float, *gpus: str) -> Said:
    slices = [f"{gpu}-_-{n}" for gpu in gpus for n in range(10)]
    return (t, "kubelet/n1", "devices", {"resource": MEMORY, "healthy": slices, "unhealthy": []})


def given(t: float, uid: str, *slices: str) -> Said:
    fields = {"pod": f"default/{uid}", "uid": uid, "container": "main", "resource": MEMORY}
    return (t, "kubelet/n1", "allocated", {**fields, "devices": list(slices)})


@pytest.mark.parametrize(
    ("there", "slices", "named"),
    [
        pytest.param(("G0", "G1"), ("G0-_-0", "G0-_-1"), [], id="of the GPU promised"),
        pytest.param(("G0", "G1"), ("G1-_-0", "G1-_-1"), [(3, 2)], id="of another one"),
        pytest.param(("G0", "G1"), ("G0-_-0", "G1-_-1"), [(3, 2)], id="of both"),
        pytest.param(("G1",), ("G1-_-0", "G1-_-1"), [], id="which is not there"),
    ],
)
def test_a_container_is_given_slices_of_the_gpu_that_was_promised(
    there: tuple[str, ...], slices: tuple[str, ...], named: list[tuple[int, int]]
) -> None:
    said = [listed(0, *there), created(1, "a", 2), promises(1, {"a": ("G0", 2)}), given(2, "a", *slices)]
    assert found(42, said) == named
    assert found(42, said, match="seed") == []


@pytest.mark.parametrize(("on_shared", "t", "named"), [("refuse", 9, [(5, 2)]), ("evict", 9, []), ("refuse", 2, [])])
def test_a_gpu_that_pods_share_is_refused_and_not_withheld(
    on_shared: str, t: float, named: list[tuple[int, int]]
) -> None:
    said = [gpus(0), *lives("a")[:4], ledgers(t, "withheld", gpus=["G0"])]
    assert found(46, said, on_shared=on_shared) == named
    assert found(46, [*said[:5], ledgers(t, "withheld", gpus=["G1"])], on_shared=on_shared) == []


def evicted(t: float, uid: str) -> Said:
    return pod(t, uid, "condition", type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI")


@pytest.mark.parametrize(
    ("asked_s", "reason", "named"),
    [
        pytest.param(5, "default/b is protected by PodDisruptionBudget x", [(5, None)], id="in part"),
        pytest.param(5, "default/b did not end in 60 s", [], id="for another reason"),
        pytest.param(7, "default/b is protected by PodDisruptionBudget x", [], id="for an earlier request"),
    ],
)
def test_pods_are_evicted_all_or_none(asked_s: float, reason: str, named: list[tuple[int, None]]) -> None:
    asks = (asked_s, "withdrawal/0-a", "asked", {"node": "n1", "gpuid": "0-a", "request": "r"})
    refuses = (8.0, "withdrawal/0-a", "refused", {"node": "n1", "gpuid": "0-a", "request": "r", "reason": reason})
    said = sorted([*lives("a")[:4], asks, evicted(6, "a")], key=lambda each: each[0])
    assert found(46, [*said, refuses], on_shared="evict") == named


MENDED = (5.0, "remediation/n1", "mended", {"gpu": "G0", "number": 1})


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([gpus(0, "G0"), MENDED], (1, 1), id="nothing follows"),
        pytest.param([gpus(0, "G0"), MENDED, ledgers(5, "withheld", gpus=[])], (2, 1), id="something else does"),
        pytest.param([gpus(0, "G0"), MENDED, gpus(5)], None, id="it is shared"),
        pytest.param([gpus(0, "G1"), MENDED], None, id="it was"),
        pytest.param([gpus(0), ledgers(1, "unhealthy", indices=[0]), MENDED], (2, 2), id="marked"),
        pytest.param([gpus(0), ledgers(1, "unhealthy", indices=[1]), MENDED], None, id="another one is marked"),
        pytest.param(
            [gpus(0), ledgers(1, "withheld", gpus=["G0"]), MENDED, ledgers(6, "withheld", gpus=[])], None, id="withheld"
        ),
    ],
)
def test_a_gpu_that_was_mended_is_shared_again(said: list[Said], named: tuple[int, int] | None) -> None:
    law = next(law for law in laws(GpuShareConfig()) if law.number == 46)
    assert numbers(breaches(law, said, until=16.0)) == ([] if named is None else [named])
    law = next(law for law in laws(GpuShareConfig()) if law.number == 46)
    assert numbers(breaches(law, said, until=14.0)) == []


WHOLE = [gpus(0), *lives("a"), *lives("b", "G1"), over(5, "a"), promises(9, {"c": ("G0", 6)}, struck=("a",))]


@pytest.mark.parametrize("number", [11, 40, 41, 42, 43, 44, 97])
def test_pods_that_live_and_end_break_no_law(number: int) -> None:
    assert found(number, [created(0, "c"), *WHOLE, bound(9, "c"), on(9, "c", "G0")]) == []


def test_more_promised_than_a_gpu_has_is_reported_as_the_second_pod_is_bound_with_the_last_promise() -> None:
    said = [gpus(0), *lives("a"), *lives("b")]
    assert found(40, said) == [(9, 8)]
    assert found(40, [gpus(0), *lives("a", memory=4), *lives("b")]) == []


def test_what_pods_exchange_in_one_write_is_judged_as_it_is_after_it() -> None:
    both = [gpus(0), *lives("a"), *lives("b", "G1")]
    assert found(40, [*both, promises(2, {"a": ("G1", 6), "b": ("G0", 6)})]) == []
    assert found(40, [*both, promises(2, {"a": ("G1", 6)})]) == [(13, 8)]


def test_with_the_designs_own_match_it_is_known_of_the_published_system() -> None:
    law = next(law for law in laws(GpuShareConfig(match="seed")) if law.number == 40)
    assert [breach.known for breach in breaches(law, [gpus(0), *lives("a"), *lives("b")])] == [SEED_MATCH]
    law = next(law for law in laws(GpuShareConfig()) if law.number == 40)
    assert [breach.known for breach in breaches(law, [gpus(0), *lives("a"), *lives("b")])] == [""]


def test_an_annotation_before_its_promise_is_reported_with_the_binding_and_another_gpu_with_the_promise() -> None:
    assert found(41, [created(0, "a"), bound(1, "a"), on(1, "a", "G0")]) == [(2, 1)]
    assert found(41, [created(0, "a"), promises(1, {"a": ("G1", 6)}), bound(1, "a"), on(1, "a", "G0")]) == [(3, 1)]
    late = [created(0, "a"), bound(1, "a"), on(1, "a", "G0"), promises(1, {"a": ("G0", 6)})]
    assert found(41, late) == [(2, 1)]


def exchanged(*said: Said) -> list[tuple[int | None, int | None]]:
    """What the law of promises says where lines of several watches may be 2 s late."""
    law = next(law for law in laws(GpuShareConfig()) if law.number == 41)
    return numbers(breaches(law, [created(0, "a"), *said], until=20, lag_s=2.0))


def test_a_promise_that_stood_within_the_lag_of_watches_is_one() -> None:
    made, struck = promises(1, {"a": ("G0", 6)}), promises(1.5, {}, struck=("a",))
    assert exchanged(on(1, "a", "G0"), made, struck) == []
    assert exchanged(made, on(1.2, "a", "G0"), struck) == []
    assert exchanged(made, struck, on(3.4, "a", "G0")) == []
    assert exchanged(made, promises(1.5, {"a": ("G1", 6)}), on(3.4, "a", "G0")) == []
    assert exchanged(made, struck, on(3.6, "a", "G0")) == [(3, None)]
    assert exchanged(on(1, "a", "G1"), made, struck) == [(1, None)]
    assert found(41, [created(0, "a"), made, promises(1, {}, struck=("a",)), on(1, "a", "G0")]) == [(3, None)]


def test_annotations_that_a_pod_came_with_are_its_makers() -> None:
    came = created(0, "a", annotated=[names.INDEX, names.UUID])
    assert found(41, [came, on(0, "a", "G0")]) == []
    assert found(42, [came, assigned(0, "a")]) == []


def test_a_pod_called_assigned_before_all_of_it_is_allocated_is_reported() -> None:
    begun = [created(0, "a"), bound(1, "a")]
    assert found(42, [*begun, assigned(1, "a")]) == [(2, 1)]
    assert found(42, [*begun, allocated(1, "a", 5), assigned(1, "a")]) == [(3, 1)]
    assert found(42, [*begun, allocated(1, "a", 6), assigned(1, "a")]) == []


def test_with_somebody_elses_plugin_it_is_known_of_the_published_one() -> None:
    said = [created(0, "a"), bound(1, "a"), assigned(1, "a")]
    for foreign, known in (((PLUGIN,), FOREIGN_PLUGIN), (("gpushare-extender",), ""), ((), "")):
        law = next(law for law in laws(GpuShareConfig(foreign=foreign)) if law.number == 42)
        assert [breach.known for breach in breaches(law, said)] == [known]


@pytest.mark.parametrize(("replaced", "foreign"), [({PLUGIN: {"process": ["x"]}}, (PLUGIN,)), ({}, ())])
def test_the_stack_says_which_components_are_somebody_elses(replaced: dict[str, Any], foreign: tuple[str, ...]) -> None:
    stack = Stack.model_validate({"kubecomp": None, "gpushare": {}, "replace": replaced})
    (configured,) = stack.configured(Facility())
    assert configured.configuration.foreign == foreign


def shares(visible: str, index: str, uuid: str, gpu: str = "0") -> list[str]:
    """What the invariant of shared memory says of a running pod that was told this and is annotated with that."""
    law = MemoryAsked()
    env = {names.VISIBLE: visible, names.INDEX: gpu, names.CONTAINER_MEMORY: "6", names.DEVICE_MEMORY: "10"}
    line = Line(
        1, 0.0, "kubelet", "kubelet/n1", "container-started", {"uid": "a", "pod": "p", "container": "c", "env": env}
    )
    notes = {
        names.INDEX: index,
        names.UUID: uuid,
        names.POD_MEMORY: "6",
        names.DEVICE_MEMORY: "10",
        names.ASSIGNED: "true",
    }
    pod = {"metadata": {"name": "p", "uid": "a", "annotations": notes}, "spec": {"nodeName": "n1"}, "status": {}}
    objects = ClusterObjects({}, {"default/p": pod}, 0.0)
    return [each.what for each in (*law.on_line(line, None), *law.on_objects(1.0, objects, None))]  # type: ignore[arg-type]


def test_gpus_named_by_index_or_uuid_are_compared_by_what_both_sides_have() -> None:
    assert shares("GPU-0", "0", "GPU-0") == []
    assert shares("0", "0", "GPU-0") == []
    assert shares("0", "0", "#0") == []
    assert shares("GPU-0", "0", "") == []
    assert len(shares("GPU-0", "0", "GPU-1")) == 1
    assert len(shares("0", "1", "#1")) == 1


def test_the_first_gpus_of_two_nodes_are_two() -> None:
    law = MemoryAsked()
    env = {names.VISIBLE: "0", names.INDEX: "0", names.CONTAINER_MEMORY: "6", names.DEVICE_MEMORY: "10"}

    def starts(node: str, uid: str) -> list[Breach]:
        fields = {"uid": uid, "pod": uid, "container": "c", "env": env}
        line = Line(1, 0.0, "kubelet", f"kubelet/{node}", "container-started", fields)
        return list(law.on_line(line, None))  # type: ignore[arg-type]

    assert [*starts("n1", "a"), *starts("n2", "b")] == []
    assert len(starts("n2", "c")) == 1


def test_a_promise_of_a_withheld_gpu_is_reported_with_the_line_that_withholds_it() -> None:
    withheld = ledgers(1, "withheld", gpus=["G0"])
    assert found(43, [gpus(0), created(0, "a"), withheld, promises(1, {"a": ("G0", 6)})]) == [(3, 2)]
    assert found(43, [gpus(0), created(0, "a"), withheld, promises(1, {"a": ("G1", 6)})]) == []
    again = ledgers(2, "withheld", gpus=[])
    assert found(43, [gpus(0), created(0, "a"), withheld, again, promises(3, {"a": ("G0", 6)})]) == []


@pytest.mark.parametrize("broken", [gpus(1, "G1"), ledgers(1, "unhealthy", indices=[1])])
def test_a_promise_of_a_broken_gpu_is_reported_once_it_must_have_been_seen(broken: Said) -> None:
    assert found(43, [gpus(0), created(0, "a"), broken, promises(3.1, {"a": ("G1", 6)})]) == [(3, 2)]
    assert found(43, [gpus(0), created(0, "a"), broken, promises(2.9, {"a": ("G1", 6)})]) == []
    assert found(43, [gpus(0), created(0, "a"), bound(0, "a"), broken, promises(3.1, {"a": ("G1", 6)})]) == []


def test_a_promise_that_leaves_one_of_an_ended_pod_is_reported_with_that_end() -> None:
    ended = [gpus(0), *lives("a"), over(2, "a"), created(3, "b")]
    assert found(44, [*ended, promises(4.1, {"b": ("G1", 6)})]) == [(9, 7)]
    assert found(44, [*ended, promises(3.9, {"b": ("G1", 6)})]) == []
    assert found(44, [*ended, promises(4.1, {"b": ("G1", 6)}, struck=("a",))]) == []


SHARED = [gpus(0), created(1, "a"), promises(10, {"a": ("G0", 6)}), bound(10, "a")]


def test_a_promise_of_a_gpu_that_fits_less_tightly_is_reported() -> None:
    assert found(45, [*SHARED, created(11, "b", 3), promises(11, {"b": ("G1", 3)})]) == [(5, 2)]
    assert found(45, [*SHARED, created(11, "b", 3), promises(11, {"b": ("G0", 3)})]) == []
    assert found(45, [*SHARED, created(11, "b", 5), promises(11, {"b": ("G1", 5)})]) == []


def test_of_gpus_that_fit_alike_the_first_is_promised() -> None:
    assert found(45, [gpus(0), created(9, "a"), promises(9, {"a": ("G1", 6)})]) == [(2, None)]
    assert found(45, [gpus(0), created(9, "a"), promises(9, {"a": ("G0", 6)})]) == []


def test_a_choice_that_what_has_ended_or_changed_lately_may_explain_is_nobodys_breach() -> None:
    later = [created(11, "b", 3), promises(11, {"b": ("G1", 3)})]
    assert found(45, [*SHARED, over(11, "a"), *later]) == []
    assert found(45, [*SHARED, gpus(10, "G0"), *later]) == []
    assert found(45, [*SHARED[:1], gpus(1, "G0"), *SHARED[1:], *later]) == []
    assert (
        found(45, [*SHARED, ledgers(10, "withheld", gpus=["G0"]), created(19, "b", 3), promises(19, {"b": ("G1", 3)})])
        == []
    )


def withheld(t: float, *uuids: str) -> Said:
    return ledgers(t, "withheld", gpus=list(uuids))


def asked(t: float) -> Said:
    return (t, "withdrawal/0-000200", "asked", {"node": "n1", "gpuid": "0-000200", "request": "r"})


def test_a_gpu_that_is_withheld_again_for_nobody_is_reported_with_the_line_that_shared_it_again() -> None:
    once = [asked(1), withheld(1, "G0"), withheld(1)]
    assert found(46, [*once, withheld(2, "G0")]) == [(3, 2)]
    assert found(46, [*once, asked(2), withheld(2, "G0")]) == []
    assert found(46, [*once, (2.0, "gpushare-device-plugin/n1", "started", {}), withheld(2, "G0")]) == []
    assert found(46, [*once, withheld(2, "G1")]) == []


def test_the_laws_share_their_books_and_each_may_be_first() -> None:
    judged = laws(GpuShareConfig())
    said = [gpus(0), *lives("a"), *lives("b")]
    law = next(law for law in judged if law.number == 44)
    breaches(law, said)
    assert len({id(each._books) for each in judged if hasattr(each, "_books")}) == 1  # type: ignore[attr-defined]
    assert law._books.promises.keys() == {"a", "b"}  # type: ignore[attr-defined]


def test_the_books_forget_pods_that_are_gone_and_have_no_promise() -> None:
    books, law = PromiseBooks(), next(law for law in laws(GpuShareConfig()) if law.number == 44)
    law._books = books  # type: ignore[attr-defined]
    breaches(law, [created(0, "a"), promises(0, {"a": ("G0", 6)}), pod(1, "a", "deleted")])
    assert books.pods.keys() == {"a"}
    breaches(law, [(9.0, "x/y", "created", {})] * 3 + [promises(2, {}, struck=("a",))])
    assert not books.pods


# What becomes of objects


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def test_a_write_of_a_ledger_is_one_line_with_all_that_changed() -> None:
    row = '{"index":0,"uuid":"G0","memory":6,"uid":"%s","namespace":"default","name":"%s","version":%d}'
    before = config_map("gpushare-ledger-n1", pods=f"[{row % ('a', 'a', 1)},{row % ('b', 'b', 1)}]")
    after = config_map("gpushare-ledger-n1", pods=f"[{row % ('b', 'b', 2)},{row % ('c', 'c', 1)}]", withheld='["G1"]')
    assert list(config_map_news(before, after)) == [
        ("gpushare/n1", "withheld", {"gpus": ["G1"]}),
        ("gpushare/n1", "promises", {"made": {"c": {"pod": "default/c", "gpu": "G0", "memory": 6}}, "struck": ["a"]}),
    ]
    assert list(config_map_news(after, after)) == []
    assert list(config_map_news(None, config_map("anything"))) == []


def test_a_node_and_its_broken_gpus_are_lines_when_they_change() -> None:
    node = {
        "metadata": {
            "name": "n1",
            "annotations": {names.NODE_GPUS: '[{"index":0,"uuid":"G0","memory":9,"usable":false}]'},
        }
    }
    assert list(node_news(None, node)) == [("gpushare/n1", "gpus", {"gpus": {"G0": 9}, "unusable": ["G0"]})]
    assert list(node_news(node, node)) == []
    marked = config_map("unhealthy-gpu-n1", gpus="0,2")
    assert list(config_map_news(None, marked)) == [("gpushare/n1", "unhealthy", {"indices": [0, 2]})]


# Planted


def nothing_counts_as_used(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger, "used_memory", lambda gpus, uses: {})


def another_gpu_is_annotated(patch: pytest.MonkeyPatch) -> None:
    real = extender.decided
    patch.setattr(extender, "decided", lambda *how: {**real(*how), names.UUID: "GPU-other"})


def a_binding_is_called_assigned(patch: pytest.MonkeyPatch) -> None:
    real = extender.decided
    patch.setattr(extender, "decided", lambda *how: {**real(*how), names.ASSIGNED: "true"})


def broken_gpus_are_promised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(extender, "without", lambda gpus, _: [type(gpu)(gpu.index, gpu.uuid, gpu.memory) for gpu in gpus])
    patch.setattr(extender, "unhealthy_indices", lambda config_map: frozenset())


def every_promise_stands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(extender, "stands", lambda *entry: True)


def nobody_says_what_was_given(patch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Any) -> None:
        """Bring nothing in line."""

    patch.setattr(NodeAllocations, "_settle", nothing)


PLANTED = [
    (
        nothing_counts_as_used,
        40,
        "gpushare/03",
        "has 15, and 20 of it are promised",
        "bound",
        "promises",
    ),
    (another_gpu_is_annotated, 41, "gpushare/03", "the ledger promises it GPU-n1-0", "annotations", "promises"),
    (a_binding_is_called_assigned, 42, "gpushare/03", "has allocated 0 of 5", "annotations", "bound"),
    (broken_gpus_are_promised, 43, "gpushare/device-plugin-1929", "GPU-n1-0, which is broken", "promises", "gpus"),
    (nobody_says_what_was_given, 97, "gpushare/04", "is not called assigned", "allocated", "bound"),
    (every_promise_stands, 44, "gpushare/extender-191", "for default/first, which has ended", "promises", "phase"),
]


@each_planted(PLANTED)
def test_the_law_finds_a_fault_of_one_line_and_names_the_lines(
    monkeypatch: pytest.MonkeyPatch, row: PlantedRow
) -> None:
    check_found(monkeypatch, row)


def test_slices_of_other_gpus_are_known_of_the_designs_own_match() -> None:
    text = (ROOT / "gpushare/23-pool-arrives.yaml").read_text()
    seed = text.replace("gpushare: {", "gpushare: {match: seed, ")
    assert seed != text
    result = played(seed)
    assert (result.verdict, result.violations) == ("passed", ())
    what, first, _ = named(result, 6)
    assert what == "default/dev-b (main) has NVIDIA_VISIBLE_DEVICES=GPU-3 and holds 0-000200, 0-000300"
    assert first == "container-started"


REFUSED: list[Said] = [
    gpus(0),
    created(1, "a"),
    pod(2, "a", "condition", type="PodScheduled", status="False", reason="Unschedulable"),
    (10, "gpushare-extender", "started", {}),
]
LATER: Said = pod(30, "b", "created", requests={})


def test_a_pod_that_waits_and_fits_is_called_by_an_extender_that_begins_anew() -> None:
    assert found(47, [*REFUSED, LATER]) == [(4, 3)]
    called = pod(11, "a", "annotations", annotations={names.ROOM: "n1 1"})
    assert found(47, [*REFUSED, called, LATER]) == []
    assert found(47, [*REFUSED, promises(11, {"a": ("G0", 6)}), bound(11, "a"), LATER]) == []


def test_a_pod_that_does_not_fit_or_whose_extender_is_gone_again_is_called_by_nobody() -> None:
    full = [promises(3, {"x": ("G0", 6)}), promises(3, {"y": ("G1", 6)})]
    assert found(47, [*REFUSED[:3], *full, REFUSED[3], LATER]) == []
    assert found(47, [*REFUSED, (12, "gpushare-extender", "killed", {}), LATER]) == []


def registers(t: float, resource: str = MEMORY) -> Said:
    return (t, "kubelet/n1", "registered", {"resource": resource})


def test_a_node_that_registers_shared_memory_and_shows_no_gpus_is_reported() -> None:
    later = over(9, "a")
    gone: Said = (3.0, "node/n1", "deleted", {})
    killed: Said = (1.5, "gpushare-device-plugin/n1", "killed", {})
    assert found(48, [registers(1), later]) == [(0, None)]
    assert found(48, [registers(1), gpus(2), later]) == []
    assert found(48, [gpus(0), registers(1), later]) == []
    assert found(48, [gpus(0), gone, registers(4), later]) == [(2, None)]
    assert found(48, [registers(1, "nvidia.com/gpu"), later]) == []
    assert found(48, [registers(1), killed, later]) == []
