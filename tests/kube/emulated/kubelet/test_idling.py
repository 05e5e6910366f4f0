"""Containers of images that nobody knows end where their pod could never go on otherwise."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.idling import RUNS_FOR, idles_for
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.simulated import DURATION, scene_of

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}


def pod(*, owner: dict[str, Any] | None = None, **annotations: str) -> dict[str, Any]:
    inits = [{"name": "prepare", "image": "x"}, {"name": "beside", "image": "x", "restartPolicy": "Always"}]
    metadata = {"name": "p", "annotations": {name.replace("_", "/"): text for name, text in annotations.items()}}
    owners = {"ownerReferences": [owner]} if owner else {}
    spec = {"initContainers": inits, "containers": [{"name": "main", "image": "x"}]}
    return {"metadata": {**metadata, **owners}, "spec": spec}


@pytest.mark.parametrize(
    ("owner", "container", "expected"),
    [
        (None, "prepare", 0.0),
        (None, "beside", math.inf),
        (None, "main", math.inf),
        (JOB, "prepare", 0.0),
        (JOB, "beside", math.inf),
        (JOB, "main", 1.0),
        ({**JOB, "kind": "ReplicaSet"}, "main", math.inf),
        ({**JOB, "controller": False}, "main", math.inf),
    ],
)
def test_init_containers_end_at_once_and_containers_of_jobs_after_a_second(
    owner: dict[str, Any] | None, container: str, expected: float
) -> None:
    assert idles_for(pod(owner=owner), container) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90.0), ("1.5s", 1.5), ("2m30s", 150.0), ("500ms", 0.5), ("1h", 3600.0), ("0", 0.0)],
)
def test_the_annotation_says_for_how_long(text: str, expected: float) -> None:
    given = pod(owner=JOB)
    given["metadata"]["annotations"] = {RUNS_FOR: text}
    assert idles_for(given, "main") == expected
    assert idles_for(given, "prepare") == 0.0


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1d", "1s2", "inf", "nan"])
def test_an_annotation_that_is_no_span_is_refused_in_one_line(text: str) -> None:
    given = pod()
    given["metadata"]["annotations"] = {RUNS_FOR: text}
    with pytest.raises(StartError, match=r"annotation mews.dev/runs-for: '.*': must be seconds, or a span"):
        idles_for(given, "main")


def launch(given: dict[str, Any], image: str, container: str) -> Launch:
    found = load_images(unknown="idle").stand_in(image)
    assert found is not None
    return Launch(given, container, 0, found, ("sleep", "7"), (), {})


def test_what_idles_is_played_for_that_long_and_ends_with_zero() -> None:
    scene = scene_of(launch(pod(owner=JOB), "example.com/x", "main"))
    assert (scene.duration_s, scene.exit_code) == (1.0, 0)
    given = pod(owner=JOB)
    given["metadata"]["annotations"] = {RUNS_FOR: "5s", DURATION: "3"}
    assert scene_of(launch(given, "example.com/x", "main")).duration_s == 3.0
