"""What the invariants of every run know of the devices of Koordinator's pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mews.kube.system.invariant import Held
from mews.systems.koordinator.holdings import held_by_annotation
from mews.systems.koordinator.names import ALLOCATED, CORE, MEMORY, RATIO


def pod(allocated: Any) -> dict[str, Any]:
    text = allocated if isinstance(allocated, str) else json.dumps(allocated)
    return {"metadata": {"name": "p", "namespace": "default", "annotations": {ALLOCATED: text}}}


def gpu(core: int, ratio: int, name: str = "GPU-1") -> dict[str, Any]:
    return {"minor": 0, "id": name, "resources": {CORE: core, RATIO: ratio, MEMORY: "8Gi"}}


@pytest.mark.parametrize(
    ("core", "ratio", "whole"), [(100, 100, True), (100, 50, False), (0, 100, False), (30, 30, False)]
)
def test_a_device_is_held_whole_where_nothing_of_it_is_left(core: int, ratio: int, whole: bool) -> None:
    [held] = held_by_annotation(pod({"gpu": [gpu(core, ratio)]}))
    named = ("GPU-1",)
    expected = (named, ()) if whole else ((), named)
    assert held == Held("", "koordinator.sh/gpu", *expected, instead_of=("nvidia.com/gpu",))


def test_other_types_are_held_beside_what_the_kubelet_gave() -> None:
    adapters = [{"minor": 1, "resources": {"koordinator.sh/rdma": 100}}]
    found = list(held_by_annotation(pod({"rdma": adapters, "gpu": [gpu(100, 100), gpu(100, 100, "GPU-2")]})))
    assert [(each.resource, each.devices, each.instead_of) for each in found] == [
        ("koordinator.sh/gpu", ("GPU-1", "GPU-2"), ("nvidia.com/gpu",)),
        ("koordinator.sh/rdma", ("rdma/1",), ()),
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"gpu": [7]}'])
def test_an_annotation_that_cannot_be_read_names_nothing(text: str) -> None:
    assert list(held_by_annotation(pod(text))) == []
