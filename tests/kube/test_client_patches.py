from __future__ import annotations

from typing import Any

import pytest

from mews.kube.api.errors import BadRequestError, InvalidError, ServerError
from mews.kube.api.objects import clone
from mews.kube.api.patches import json_patch, merge_patch
from mews.kube.api.quantities import canonical
from mews.kube.api.strategic import strategic_merge
from mews.kube.emulated.core.objects.merging import MergeKeys

POD_KEYS = MergeKeys("core/v1.Pod")


def containers(*names: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name, "image": f"{name}:1"} for name in names]}}


def names(pod: dict[str, Any]) -> list[str]:
    return [container["name"] for container in pod["spec"]["containers"]]


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": None, "c": {"d": None, "e": 1}}, {"b": 2, "c": {"e": 1}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_a_merge_patch_merges_maps_and_replaces_the_rest(target: Any, patch: Any, expected: Any) -> None:
    before = clone(target)
    assert merge_patch(target, patch) == expected
    assert target == before


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/l/1", "value": 9}, {"l": [1, 9, 2], "m": {"a/b": 1}}),
        ({"op": "add", "path": "/l/-", "value": 9}, {"l": [1, 2, 9], "m": {"a/b": 1}}),
        ({"op": "replace", "path": "/l/0", "value": 9}, {"l": [9, 2], "m": {"a/b": 1}}),
        ({"op": "replace", "path": "/new", "value": 9}, {"l": [1, 2], "m": {"a/b": 1}, "new": 9}),
        ({"op": "remove", "path": "/m/a~1b"}, {"l": [1, 2], "m": {}}),
        ({"op": "move", "from": "/l/0", "path": "/m/x"}, {"l": [2], "m": {"a/b": 1, "x": 1}}),
        ({"op": "copy", "from": "/m", "path": "/n"}, {"l": [1, 2], "m": {"a/b": 1}, "n": {"a/b": 1}}),
        ({"op": "test", "path": "/gone", "value": None}, {"l": [1, 2], "m": {"a/b": 1}}),
    ],
)
def test_each_operation_of_a_json_patch(operation: dict[str, Any], expected: Any) -> None:
    target = {"l": [1, 2], "m": {"a/b": 1}}
    assert json_patch(target, [operation]) == expected
    assert target == {"l": [1, 2], "m": {"a/b": 1}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/l/0", "value": 2},
        {"op": "remove", "path": "/nothing"},
        {"op": "add", "path": "/l/7", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "frobnicate", "path": "/l"},
    ],
)
def test_a_failed_operation_is_refused(operation: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match="the server rejected our request due to an error in our request"):
        json_patch({"l": [1]}, [operation])


def test_copies_of_a_json_patch_are_bounded_in_bytes() -> None:
    target = {"l": ["x" * 1000]}
    doubled = [{"op": "copy", "from": "/l", "path": "/l/-"}] * 28
    with pytest.raises(InvalidError, match="the server rejected our request due to an error in our request"):
        json_patch(target, doubled)
    assert target == {"l": ["x" * 1000]}


def test_the_bound_on_copies_is_that_of_the_real_server() -> None:
    piece = "x" * (1024 * 1024 - 2)  # a mebibyte with its quotes
    copies = [{"op": "copy", "from": "/a", "path": f"/b{number}"} for number in range(4)]
    assert len(json_patch({"a": piece}, copies[:3])) == 4
    with pytest.raises(InvalidError):
        json_patch({"a": piece}, copies)


def test_moves_are_not_counted_as_copies() -> None:
    piece = "x" * (1024 * 1024)
    there_and_back = [{"op": "move", "from": "/a", "path": "/b"}, {"op": "move", "from": "/b", "path": "/a"}]
    assert json_patch({"a": piece}, there_and_back * 5) == {"a": piece}


def test_a_json_patch_is_a_list() -> None:
    with pytest.raises(BadRequestError):
        json_patch({}, {"op": "add"})


def test_strategic_merge_joins_containers_by_name_and_puts_new_ones_first() -> None:
    patched = strategic_merge(containers("a", "b"), containers("new", "b"), POD_KEYS)
    assert names(patched) == ["a", "new", "b"] or names(patched) == ["new", "a", "b"]
    assert strategic_merge(containers("a"), containers("new"), POD_KEYS)["spec"]["containers"][0]["name"] == "new"


def test_strategic_merge_obeys_its_directives() -> None:
    delete = {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}
    assert names(strategic_merge(containers("a", "b"), delete, POD_KEYS)) == ["b"]
    replace = {"spec": {"containers": [{"name": "c"}, {"$patch": "replace"}]}}
    assert names(strategic_merge(containers("a", "b"), replace, POD_KEYS)) == ["c"]
    order = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}
    assert names(strategic_merge(containers("a", "b"), order, POD_KEYS)) == ["b", "a"]
    keep = {"spec": {"$retainKeys": ["x"], "x": 1}}
    assert strategic_merge({"spec": {"y": 2}}, keep, POD_KEYS) == {"spec": {"x": 1}}
    gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}}
    assert strategic_merge({"metadata": {"finalizers": ["a/b", "c/d"]}}, gone, POD_KEYS) == {
        "metadata": {"finalizers": ["c/d"]}
    }


def test_strategic_merge_joins_conditions_and_replaces_tolerations() -> None:
    target = {"status": {"conditions": [{"type": "A", "status": "True"}]}, "spec": {"tolerations": [{"key": "x"}]}}
    patch = {"status": {"conditions": [{"type": "A", "status": "False"}]}, "spec": {"tolerations": [{"key": "y"}]}}
    assert strategic_merge(target, patch, POD_KEYS) == patch


def test_strategic_merge_refuses_what_it_cannot_place() -> None:
    with pytest.raises(ServerError, match=r"map: map\[image:x\] does not contain declared merge key: name"):
        strategic_merge(containers("a"), {"spec": {"containers": [{"image": "x"}]}}, POD_KEYS)
    with pytest.raises(ServerError, match="unknown patch type: upside-down"):
        strategic_merge({}, {"$patch": "upside-down"}, POD_KEYS)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (1, "1"), ("0.5", "500m"), ("1500m", "1500m"), ("2.0", "2"), ("134217728", "134217728"), ("1024Mi", "1Gi"),
        ("1000", "1k"), ("1.5Gi", "1536Mi"), ("1e-1", "100e-3"), ("0", "0"), ("1e3", "1e3"), ("512Ki", "512Ki"),
    ],
)  # fmt: skip
def test_quantities_are_stored_in_canonical_form(given: str | int, stored: str) -> None:
    assert canonical(given) == stored
