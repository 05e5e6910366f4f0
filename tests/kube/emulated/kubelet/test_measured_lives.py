"""The emulated kubelet lives the pods that a real one lived: data/kubelet-1.34/lifecycle, update by update."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.objects import Object
from mews.kube.api.resources import EVENTS, PODS
from mews.kube.client.port import DeleteOptions
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError
from mews.kube.emulated.kubelet.images import ContainerBehaviour, Image, ImageBook
from tests.kube.emulated.kubelet.bench import NODE, Bench, until

DATA = Path(os.environ.get("MEWS_DATA_DIR", "")) / "kubelet-1.34" / "lifecycle"
LIVES = (
    *("succeeds", "fails", "device", "two-containers", "with-init", "killed", "obedient", "forced"),
    *("rejected", "crash-loop"),
)
OVER_ASK = "Allocate failed due to requested number of devices unavailable for example.com/life. Requested: 9, "
OVER_ASK += "Available: 4, which is unexpected"

needs_data = pytest.mark.skipif(
    "MEWS_DATA_DIR" not in os.environ, reason="needs the measured data: set MEWS_DATA_DIR to the data directory"
)


def measured(life: str) -> list[tuple[float, str, str, Object]]:
    """(seconds since the first record, pod or event, type, object)."""
    records = [json.loads(line) for line in (DATA / f"{life}.jsonl").read_text("utf-8").splitlines()]
    times = [datetime.fromisoformat(f"2026-11-20T{record['received']}") for record in records]
    return [
        ((time - times[0]).total_seconds(), record["watch"], record["type"], record["object"])
        for time, record in zip(times, records, strict=True)
    ]


def condition(entry: dict[str, Any]) -> str:
    return f"{entry['type']}={entry['status']} {entry.get('reason', '')} {entry.get('message', '')}".strip()


def container(entry: dict[str, Any], *, deleting: bool) -> dict[str, Any]:
    kind, state = next(iter(entry["state"].items()))
    kept = {key: value for key, value in state.items() if key in ("reason", "message", "exitCode")}
    shown = {"name": entry["name"], "state": (kind, kept), "ready": entry["ready"], "started": entry["started"]}
    shown |= {key: entry.get(key) for key in ("restartCount", "resources", "allocatedResources")}
    if not deleting:  # the real one has lost its old containers by then
        shown["last"] = next(iter(entry["lastState"]), "")
    return shown


def sight(pod: Object) -> dict[str, Any]:
    """All of a pod's status but times, addresses and made-up identifiers."""
    metadata, status = pod["metadata"], pod["status"]
    deleting = "deletionTimestamp" in metadata
    seen: dict[str, Any] = {key: status.get(key) for key in ("phase", "reason", "message", "observedGeneration")}
    seen |= {"generation": metadata.get("generation"), "grace": metadata.get("deletionGracePeriodSeconds")}
    seen |= {"keys": sorted(key for key in status), "qosClass": status["qosClass"]}
    seen["conditions"] = [condition(entry) for entry in status.get("conditions", ())]
    for key in ("initContainerStatuses", "containerStatuses"):
        seen[key] = [container(entry, deleting=deleting) for entry in status.get(key, ())]
    return json.loads(json.dumps(seen).replace(metadata["uid"], "UID"))


def sequence(pods: list[tuple[str, Object]]) -> list[Any]:
    return [(kind, sight(pod)) for kind, pod in pods]


def events_of(records: list[Object]) -> list[Any]:
    shown = []
    for event in records:
        involved = event["involvedObject"]
        if event["source"]["component"] == "kubelet":
            message = event["message"].replace(involved["uid"], "UID")
            shown.append((event["type"], event["reason"], message, event["count"], involved.get("fieldPath", "")))
    return shown


def given(record: Object, life: str) -> Object:
    """The pod as its user wrote it."""
    kept = ("containers", "initContainers", "restartPolicy", "terminationGracePeriodSeconds", "tolerations")
    spec = {key: record["spec"][key] for key in kept if key in record["spec"]}
    for entry in (*spec["containers"], *spec.get("initContainers", ())):
        entry.pop("volumeMounts", None)
    if life == "rejected":
        spec["nodeName"] = NODE
    annotations = {"mews.dev/ignores-term": "true"} if life == "killed" else {}
    metadata = {"name": life, "namespace": "default", "annotations": annotations}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


async def relive(life: str) -> tuple[list[tuple[float, str, Object]], list[Object]]:
    """The same pod, bound and deleted as then: (seconds, type, object) of its watch, and its events."""
    records = [(t, kind, obj) for t, watch, kind, obj in measured(life) if watch == "pod"]
    image = records[0][2]["spec"]["containers"][0]["image"]
    bench = Bench()
    bench.images = ImageBook({image.rsplit(":")[0]: Image(image, simulate=ContainerBehaviour())})
    bench.devices.refuse["rejected"] = AdmissionRejectedError("UnexpectedAdmissionError", OVER_ASK)
    seen: list[tuple[float, str, Object]] = []
    events: list[Object] = []
    loop = asyncio.get_running_loop()

    async def watch_pods() -> None:
        async for event in bench.kube.watch(PODS, namespace="default"):
            seen.append((loop.time(), event.type.value, event.object))

    async def watch_events() -> None:
        async for event in bench.kube.watch(EVENTS, namespace="default"):
            if event.object["involvedObject"]["kind"] == "Pod":
                events.append(event.object)

    watches = [asyncio.create_task(watch_pods()), asyncio.create_task(watch_events())]
    async with bench.running():
        await asyncio.sleep(12)
        await bench.kube.create(PODS, given(records[0][2], life), namespace="default")
        if life != "rejected":
            await bench.kube.bind("default", life, NODE)
        index = next(i for i, (_, _, obj) in enumerate(records) if "deletionTimestamp" in obj["metadata"])
        await until(lambda: len(seen) >= index)
        await asyncio.sleep(records[index][0] - records[index - 1][0])
        grace_s = records[index][2]["metadata"]["deletionGracePeriodSeconds"]
        await bench.kube.delete(PODS, life, namespace="default", options=DeleteOptions(grace_period_s=grace_s))
        await until(lambda: seen[-1][1] == "DELETED")
        await asyncio.sleep(5)
    for task in watches:
        task.cancel()
    await asyncio.gather(*watches, return_exceptions=True)
    await bench.containerd.close()
    return seen, events


@needs_data
@pytest.mark.parametrize("life", LIVES)
def test_a_watch_sees_the_same_updates_as_of_a_real_kubelet(life: str) -> None:
    records = [(kind, obj) for _, watch, kind, obj in measured(life) if watch == "pod"]
    seen, _ = run_virtual(lambda: relive(life))
    ours, theirs = sequence([(kind, obj) for _, kind, obj in seen]), sequence(records)
    for mine, real in zip(ours, theirs, strict=False):
        assert mine == real
    assert len(ours) == len(theirs)


@needs_data
@pytest.mark.parametrize("life", LIVES)
def test_its_events_are_those_of_a_real_kubelet(life: str) -> None:
    records = [obj for _, watch, _, obj in measured(life) if watch == "event"]
    _, events = run_virtual(lambda: relive(life))
    assert events_of(events) == events_of(records)


@needs_data
@pytest.mark.parametrize("life", LIVES)
def test_its_updates_come_as_fast_as_measured(life: str) -> None:
    records = [t for t, watch, _, _ in measured(life) if watch == "pod"]
    seen, _ = run_virtual(lambda: relive(life))
    spans = [later - earlier for (earlier, _, _), (later, _, _) in pairwise(seen)]
    real = [later - earlier for earlier, later in pairwise(records)]
    late = [(mine, theirs) for mine, theirs in zip(spans, real, strict=True) if abs(mine - theirs) > 1.6]
    if life == "crash-loop":
        late = [pair for pair in late if not 10.0 <= pair[0] <= 15.0]  # the next sync: 10 to 15 s later
    assert not late
