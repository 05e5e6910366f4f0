"""Objects that are alike have their parts in common, and stay what they are."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from mews.kube.api import sharing
from mews.kube.api.objects import clone
from mews.kube.api.resources import PODS
from mews.kube.api.sharing import share_parts
from mews.kube.client.port import Patch
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store


def pod(name: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    containers = [{"name": "main", "image": "a", "resources": resources}]
    return {"metadata": {"name": name, "labels": {"app": "x"}}, "spec": {"containers": containers}}


def test_equal_parts_of_two_objects_become_one_and_sections_stay_their_own() -> None:
    first, second = pod("a"), pod("b")
    before = [clone(first), clone(second)]
    share_parts(first)
    share_parts(second)
    assert [first, second] == before
    assert first["spec"]["containers"] is second["spec"]["containers"]
    assert first["metadata"]["labels"] is second["metadata"]["labels"]
    assert first["metadata"] is not second["metadata"]
    assert first["spec"] is not second["spec"]


def test_what_is_written_otherwise_is_not_taken_for_the_same() -> None:
    values: list[Any] = [{"x": 1}, {"x": True}, {"x": 1.0}, {"x": "1"}, {"x": 1, "y": 2}, {"y": 2, "x": 1}, [1], [True]]
    objects = [{"spec": {"part": clone(value)}} for value in values]
    for obj in objects:
        share_parts(obj)
    assert [json.dumps(obj["spec"]["part"]) for obj in objects] == [json.dumps(value) for value in values]


def test_only_so_many_parts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_PARTS", {})
    monkeypatch.setattr(sharing, "_MOST", 10)
    for number in range(100):
        share_parts({"spec": {"part": {"number": number}}})
    assert len(sharing._PARTS) == 10


def test_a_change_of_one_object_leaves_those_alone_that_share_its_parts() -> None:
    async def main() -> None:
        store = fresh_store(lambda: 0.0, random.Random(1))
        store.keeps_owners = True  # as it is served
        kube = InProcessKube(store)
        for name in ("a", "b"):
            await kube.create(PODS, pod(name), namespace="default")
        first, second = [await kube.get(PODS, name, namespace="default") for name in ("a", "b")]
        assert first["spec"]["tolerations"] is second["spec"]["tolerations"]
        unchanged = clone(second)
        change = {"metadata": {"labels": {"app": "y"}}, "spec": {"containers": [{"name": "main", "image": "z"}]}}
        changed = await kube.patch(PODS, "a", change, kind=Patch.STRATEGIC, namespace="default")
        assert changed["spec"]["containers"][0]["image"] == "z"
        assert changed["metadata"]["labels"] == {"app": "y"}
        assert await kube.get(PODS, "b", namespace="default") == unchanged

    asyncio.run(main())
