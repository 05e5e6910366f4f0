"""Whatever stands in annotations, labels and Device objects: it is read, or refused in one line of its own."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mews.kube.api.selectors import match_expressions
from mews.systems.koordinator.allocations import allocations_of, parse_allocations
from mews.systems.koordinator.checkpoint import CheckpointFormatError, read_checkpoint
from mews.systems.koordinator.devices import parse
from mews.systems.koordinator.errors import BadDeviceError, InvalidRequestError
from mews.systems.koordinator.gang_plans import gang_key
from mews.systems.koordinator.hints import hints_of
from mews.systems.koordinator.names import (
    ALLOCATED,
    CHECKPOINTS,
    FOUND,
    HINT,
    JOINT,
    LINKS,
    MIN_AVAILABLE,
    OLD_CHECKPOINTS,
    PARTITION_SPEC,
    PARTITIONS,
    POD_GROUP,
)
from mews.systems.koordinator.usage import NodeUse, PodUse

WORDS = st.sampled_from(
    [
        "gpu",
        "rdma",
        "minor",
        "minors",
        "resources",
        "resouurces",
        "id",
        "extension",
        "vfs",
        "busID",
        "selector",
        "vfSelector",
        "matchLabels",
        "matchExpressions",
        "key",
        "operator",
        "values",
        "In",
        "Exists",
        "deviceTypes",
        "requiredScope",
        "SamePCIe",
        "allocatePolicy",
        "ringBusBandwidth",
        "allocationScore",
        "bandwidth",
        "link",
        "type",
        "health",
        "topology",
        "socketID",
        "nodeID",
        "pcieID",
        "vfGroups",
        "labels",
        "podUID",
        "deviceIDs",
        "koordinator.sh/gpu-core",
        "exclusivePolicy",
        "allocateStrategy",
        "requiredTopologyScope",
        "1",
        "2",
        "1Gi",
        "Data",
        "PodDeviceEntries",
        "DeviceIDs",
        "PodUID",
        "ContainerName",
        "ResourceName",
        "1e999999999",
        "NaN",
    ]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 2**70), st.floats(), st.text(max_size=4), WORDS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=14,
)
TEXTS = st.one_of(VALUES.map(json.dumps), st.text(max_size=8), st.just("[" * 100_000), st.just('{"a":' * 50_000))
SOME = settings(max_examples=300, deadline=None)


def one_line(error: Exception) -> None:
    assert str(error)
    assert "\n" not in str(error)


@SOME
@given(TEXTS)
def test_an_annotation_of_devices(text: str) -> None:
    pod = {"metadata": {"name": "p", "namespace": "n", "annotations": {ALLOCATED: text}}}
    try:
        found = allocations_of(pod)
    except BadDeviceError as error:
        one_line(error)
    else:
        NodeUse.of(parse({"metadata": {"name": "n"}})).plus(PodUse("p", "n/p", found)).minus("p")


@SOME
@given(st.dictionaries(st.sampled_from(("gpu", "rdma")), VALUES, max_size=2))
def test_an_annotation_of_devices_of_its_shape(by_type: dict[str, Any]) -> None:
    try:
        parse_allocations(json.dumps(by_type))
    except BadDeviceError as error:
        one_line(error)


@SOME
@given(st.sampled_from((HINT, JOINT, PARTITION_SPEC)), TEXTS)
def test_hints(key: str, text: str) -> None:
    try:
        found = hints_of({key: text})
    except InvalidRequestError as error:
        one_line(error)
        return
    for hint in found.by_type.values():
        hint.selects({"a": "b"})
        hint.selects_function({"a": "b"})


@SOME
@given(st.dictionaries(st.sampled_from(("matchLabels", "matchExpressions")), VALUES))
def test_a_selector_that_was_let_in_can_be_asked(selector: dict[str, Any]) -> None:
    try:
        found = hints_of({HINT: json.dumps({"gpu": {"selector": selector}})})
    except InvalidRequestError as error:
        one_line(error)
        return
    read = found.by_type["gpu"].selector
    assert read is not None
    match_expressions(read, {"gpu": "1"})


DEVICE = st.dictionaries(
    st.sampled_from(
        ("type", "deviceType", "minor", "id", "health", "resources", "resource", "topology", "vfGroups", "labels")
    ),
    VALUES,
)


@SOME
@given(st.one_of(VALUES, st.fixed_dictionaries({"devices": st.lists(st.one_of(DEVICE, VALUES), max_size=3)})))
def test_a_device_object(spec: Any) -> None:
    try:
        NodeUse.of(parse({"metadata": {"name": "n"}, "spec": spec}))
    except BadDeviceError as error:
        one_line(error)


@SOME
@given(st.sampled_from((LINKS, PARTITIONS, CHECKPOINTS, OLD_CHECKPOINTS, FOUND)), TEXTS)
def test_the_annotations_of_a_device_object(key: str, text: str) -> None:
    try:
        parse({"metadata": {"name": "n", "annotations": {key: text}}})
    except BadDeviceError as error:
        one_line(error)


@SOME
@given(TEXTS)
def test_a_kubelet_s_checkpoint(text: str) -> None:
    try:
        read_checkpoint(text)
    except CheckpointFormatError as error:
        one_line(error)


@given(st.text(max_size=6), st.text(max_size=6))
def test_the_labels_of_a_gang(name: str, least: str) -> None:
    labels = {POD_GROUP: name, MIN_AVAILABLE: least}
    gang_key({"metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": labels}, "spec": {}})
