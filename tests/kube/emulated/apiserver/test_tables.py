from __future__ import annotations

from typing import Any

import pytest

from mews.kube.emulated.core.tables import jsonpaths
from mews.kube.emulated.core.tables.durations import human
from mews.kube.emulated.kinds.pods import pod_table
from mews.kube.emulated.types.custom import trees
from mews.kube.emulated.types.custom.values import value_errors

NOW_S = 1_767_225_720.0
BORN = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("span_s", "shown"),
    [
        (0, "0s"), (119, "119s"), (120, "2m"), (543, "9m3s"), (600, "10m"), (3 * 3600, "3h"), (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"), (47 * 3600, "47h"), (49 * 3600, "2d1h"), (8 * 86_400, "8d"), (800 * 86_400, "2y70d"),
        (-5, "<invalid>"),
    ],
)  # fmt: skip
def test_ages_read_as_kubectl_writes_them(span_s: float, shown: str) -> None:
    assert human(span_s) == shown


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.replicas", [2]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[0].type", ["Other"]),
        (".status.conditions[*].type", ["Other", "Ready"]),
        (".metadata.labels['a.b/c']", ["x"]),
        (r".metadata.labels.a\.b/c", ["x"]),
        (".spec.nothing.below", []),
    ],
)
def test_printer_columns_find_their_values(path: str, found: list[Any]) -> None:
    conditions = [{"type": "Other"}, {"type": "Ready", "status": "True"}]
    obj = {"metadata": {"labels": {"a.b/c": "x"}}, "spec": {"replicas": 2}, "status": {"conditions": conditions}}
    assert jsonpaths.find(obj, path) == found


def a_pod(status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "p", "creationTimestamp": BORN}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}], **spec}, "status": status}


def one(state: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "state": state, **more}]


@pytest.mark.parametrize(
    ("status", "ready", "word", "restarts"),
    [
        ({"phase": "Pending"}, "0/1", "Pending", "0"),
        ({"phase": "Running", "containerStatuses": one({"running": {}}, ready=True)}, "1/1", "Running", "0"),
        (
            {"phase": "Succeeded", "containerStatuses": one({"terminated": {"reason": "Completed"}})},
            "0/1", "Completed", "0",
        ),
        ({"phase": "Failed", "containerStatuses": one({"terminated": {"exitCode": 7}})}, "0/1", "ExitCode:7", "0"),
        (
            {
                "phase": "Running",
                "containerStatuses": one(
                    {"waiting": {"reason": "CrashLoopBackOff"}}, restartCount=3,
                    lastState={"terminated": {"finishedAt": "2026-01-01T00:01:00Z"}},
                ),
            },
            "0/1", "CrashLoopBackOff", "3 (60s ago)",
        ),
        ({"phase": "Failed", "reason": "UnexpectedAdmissionError"}, "0/1", "UnexpectedAdmissionError", "0"),
    ],
)  # fmt: skip
def test_a_pod_is_summed_up_in_one_line(status: dict[str, Any], ready: str, word: str, restarts: str) -> None:
    row = pod_table.cells(a_pod(status), NOW_S)
    assert row[:5] == ["p", ready, word, restarts, "2m"]


def test_a_pod_in_its_init_containers_says_how_far_it_is() -> None:
    pod = a_pod({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {}}]})
    pod["spec"]["initContainers"] = [{"name": "i"}, {"name": "j"}]
    assert pod_table.cells(pod, NOW_S)[2] == "Init:0/2"


def test_a_schema_prunes_defaults_and_finds_faults() -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "default": {},
                "properties": {
                    "size": {"type": "integer", "default": 3, "maximum": 5},
                    "port": {"x-kubernetes-int-or-string": True},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        },
    }
    obj: dict[str, Any] = {"kind": "X", "spec": {"unknown": 1, "size": None, "free": {"a": 1}}, "other": 2}
    trees.prune(obj, schema)
    trees.default(obj, schema)
    assert obj == {"kind": "X", "spec": {"size": 3, "free": {"a": 1}}}
    empty: dict[str, Any] = {}
    trees.default(empty, schema)
    assert empty == {"spec": {"size": 3}}
    wrong = {"spec": {"size": 6, "port": 1.5}}
    assert [fault.path for fault in value_errors(wrong, schema)] == ["spec.size", "spec.port"]
