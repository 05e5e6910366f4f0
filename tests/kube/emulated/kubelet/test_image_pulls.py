"""When a real image is pulled, and what is reported of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.objects import Object
from mews.kube.clock import stream
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.errors import PullError
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.runtime import EnginePort
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from tests.kube.emulated.kubelet.bench import Bench


class FakeStore:
    """An engine's images, and those of its registry."""

    def __init__(self, there: Collection[str] = (), served: Collection[str] = ()) -> None:
        self.there = set(there)
        self.served = set(served)
        self.pulls: list[str] = []

    async def image(self, reference: str) -> object | None:
        return reference if reference in self.there else None

    async def pull(self, reference: str) -> None:
        self.pulls.append(reference)
        if reference not in self.served:
            raise PullError(f"manifest for {reference} not found")
        self.there.add(reference)


def bench_with(store: FakeStore, **own: object) -> Bench:
    bench = Bench()
    played = SimulatedRuntime(bench.pace)
    bench.containerd = Containerd(bench.clock, stream(1, "c"), simulated=played, engine=EnginePort(played, store))
    bench.images = load_images(own=own, unknown="container")
    return bench


def container(image: str, pull: str = "IfNotPresent") -> list[dict[str, Any]]:
    return [{"name": "main", "image": image, "command": ["true"], "imagePullPolicy": pull}]


def waiting(pod: Object) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return str(((statuses[0].get("state") or {}).get("waiting") or {}).get("reason"))


@pytest.mark.parametrize(
    ("policy", "there", "served", "pulls", "pulled"),
    [
        ("IfNotPresent", True, False, 0, 'Container image "team/app:1" already present on machine'),
        ("IfNotPresent", False, True, 1, 'Successfully pulled image "team/app:1" in'),
        ("Always", True, True, 1, 'Successfully pulled image "team/app:1" in'),
        ("Never", True, False, 0, 'Container image "team/app:1" already present on machine'),
    ],
)
def test_the_policy_says_whether_an_image_is_pulled(
    policy: str, there: bool, served: bool, pulls: int, pulled: str
) -> None:
    async def main() -> None:
        store = FakeStore(["team/app:1"] if there else [], ["team/app:1"] if served else [])
        bench = bench_with(store)
        async with bench.running():
            await bench.pod("a", containers=container("team/app:1", policy))
            await bench.phase("a", "Succeeded")
        assert store.pulls == ["team/app:1"] * pulls
        assert any(event[1] == "Pulled" and event[2].startswith(pulled) for event in await bench.events("a"))
        await bench.containerd.close()

    run_virtual(main)


def test_an_image_that_cannot_be_pulled_is_tried_again_with_back_off() -> None:
    async def main() -> None:
        store = FakeStore(there=["team/app:1"])
        bench = bench_with(store)
        async with bench.running():
            await bench.pod("a", containers=container("team/app:1", "Always"))
            await bench.until("a", lambda pod: waiting(pod) == "ErrImagePull")
            pod = await bench.until("a", lambda pod: waiting(pod) == "ImagePullBackOff")
            message = pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
            assert message == ('Back-off pulling image "team/app:1": ErrImagePull: manifest for team/app:1 not found')
            store.served.add("team/app:1")
            await bench.phase("a", "Succeeded")
        events = [event[:3] for event in await bench.events("a")]
        assert ("Warning", "Failed", 'Failed to pull image "team/app:1": manifest for team/app:1 not found') in events
        assert ("Warning", "Failed", "Error: ImagePullBackOff") in events
        assert 2 <= len(store.pulls) <= 4, "not at every look"
        await bench.containerd.close()

    run_virtual(main)


def test_an_image_that_must_not_be_pulled_is_not() -> None:
    async def main() -> None:
        store = FakeStore(served=["team/app:1"])
        bench = bench_with(store)
        async with bench.running():
            await bench.pod("a", containers=container("team/app:1", "Never"))
            await bench.until("a", lambda pod: waiting(pod) == "ErrImageNeverPull")
        assert store.pulls == []
        await bench.containerd.close()

    run_virtual(main)


def test_an_image_can_stand_for_another_and_keeps_its_tag_where_it_stands_for_itself() -> None:
    async def main() -> None:
        store = FakeStore(served=["else/where:3", "team/own:7"])
        bench = bench_with(store, **{"team/app": {"container": "else/where:3"}, "team/own": "container"})
        async with bench.running():
            await bench.pod("a", containers=container("team/app:1"))
            await bench.pod("b", containers=container("team/own:7"))
            await bench.phase("a", "Succeeded")
            await bench.phase("b", "Succeeded")
        assert sorted(store.pulls) == ["else/where:3", "team/own:7"]
        await bench.containerd.close()

    run_virtual(main)
