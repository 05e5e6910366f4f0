"""Invariant 29: streams in which a device has two claims at once are reported, others are not."""

from __future__ import annotations

from typing import Any

import pytest

from mews.harness.invariants import judge
from tests.harness.invariants.stream import Stream


def prepared(stream: Stream, claim: str, *, host: str = "host-1", alone: bool = True, device: str = "p/gpu-0") -> Any:
    told = {"driver": "d", "devices": [device], "alone": [device] if alone else []}
    return stream.kubelet(host, "claim-prepared", claim=f"default/{claim}", uid=claim, **told)


def unprepared(stream: Stream, claim: str, *, host: str = "host-1", driver: str = "d") -> Any:
    return stream.kubelet(host, "claim-unprepared", claim=f"default/{claim}", uid=claim, driver=driver)


def allocated(stream: Stream, claim: str) -> Any:
    told = {"devices": ["d/p/gpu-0"], "alone": ["d/p/gpu-0"]}
    return stream.journal.write(
        "api", f"claim/default/{claim}", "claim-allocated", claim=f"default/{claim}", uid=claim, **told
    )


def freed(stream: Stream, claim: str) -> None:
    stream.journal.write("api", f"claim/default/{claim}", "claim-freed", claim=f"default/{claim}", uid=claim)


@pytest.mark.parametrize("take", [prepared, allocated])
def test_a_device_with_two_claims_breaks_29(take: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        stream = Stream({})
        first, second = take(stream, "c"), take(stream, "e")
        return stream, first, second

    stream, first, second = broken()
    assert stream.numbers() == [29]
    assert stream.first() is second
    assert [violation.after for violation in stream.judge.violations] == [first]
    monkeypatch.delitem(judge.LAWS, 29)
    assert broken()[0].numbers() == []


def test_the_next_claim_may_have_what_the_last_gave_back() -> None:
    stream = Stream({})
    prepared(stream, "c")
    prepared(stream, "c")
    unprepared(stream, "c")
    prepared(stream, "e")
    allocated(stream, "c")
    freed(stream, "c")
    allocated(stream, "e")
    assert stream.numbers() == []


def test_what_another_driver_gives_back_is_not_this_ones() -> None:
    stream = Stream({})
    prepared(stream, "c")
    unprepared(stream, "c", driver="other")
    prepared(stream, "e")
    assert stream.numbers() == [29]


def test_administrators_other_nodes_and_other_devices_are_no_breach() -> None:
    stream = Stream({})
    prepared(stream, "c")
    prepared(stream, "admin", alone=False)
    prepared(stream, "e", host="host-2")
    prepared(stream, "f", device="p/gpu-1")
    assert stream.numbers() == []


@pytest.mark.parametrize(
    ("pods", "env", "broken"),
    [
        (["p"], "GPU-a", []),
        (["other"], "GPU-a", [6]),
        (["p"], "GPU-b", [6]),
        (["p"], "GPU-a,GPU-c", [6]),
    ],
    ids=["its claim's", "another pod's claim", "on another host", "more than the claim has"],
)
def test_a_container_may_name_the_devices_of_its_claims_and_no_others(
    pods: list[str], env: str, broken: list[int]
) -> None:
    stream = Stream({"a": "1", "b": "2", "c": "1"})
    name = {"claim": "default/c", "uid": "c"}
    stream.journal.write("api", "claim/default/c", "claim-reserved", **name, pods=pods)
    prepared(stream, "c")
    who = {"pod": "default/p", "uid": "p", "container": "main"}
    stream.kubelet("host-1", "container-started", **who, env={"NVIDIA_VISIBLE_DEVICES": env})
    assert stream.numbers() == broken
    unprepared(stream, "c")
    again = {**who, "container": "again"}
    stream.kubelet("host-1", "container-started", **again, env={"NVIDIA_VISIBLE_DEVICES": "GPU-a"})
    assert stream.numbers() == [*broken, 6]
