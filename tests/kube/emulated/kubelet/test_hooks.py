"""Life-cycle hooks of simulated containers, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from mews.harness.clock import run_virtual
from mews.kube.api.objects import Object
from mews.kube.api.resources import PODS
from mews.kube.client.port import DeleteOptions
from mews.kube.emulated.kubelet.unhealthy_window import FAILING
from tests.kube.emulated.kubelet.bench import Bench


def container(hook: str, handler: dict[str, Any], command: list[str] | None = None) -> dict[str, Any]:
    words = command or ["sleep", "100000"]
    return {"name": "main", "image": "busybox", "command": words, "lifecycle": {hook: handler}}


def ended(pod: Object) -> dict[str, Any]:
    return dict(pod["status"]["containerStatuses"][0]["state"].get("terminated") or {})


async def deleted(bench: Bench, name: str, grace_s: int | None = None) -> tuple[float, list[tuple[str, str]]]:
    """Seconds until the pod is gone, and its events."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await bench.kube.delete(PODS, name, namespace="default", options=DeleteOptions(grace_period_s=grace_s))
    pod = await bench.until(name, lambda pod: bool(ended(pod)))
    took_s = loop.time() - began
    assert ended(pod)["exitCode"] in (137, 143)
    return took_s, [(reason, said) for _, reason, said, _ in await bench.events(name)]


def test_term_comes_after_the_pre_stop_hook() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", containers=[container("preStop", {"exec": {"command": ["sleep", "7"]}})])
            await bench.phase("a", "Running")
            took_s, events = await deleted(bench, "a")
            assert 7 < took_s < 10
            assert ("Killing", "Stopping container main") in events
            assert "FailedPreStopHook" not in [reason for reason, _ in events]
        await bench.containerd.close()

    run_virtual(main)


def test_a_pre_stop_hook_is_cut_off_with_the_grace_and_leaves_two_seconds() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            stubborn = ["sh", "-c", "trap '' TERM; sleep 9999"]
            parts = container("preStop", {"sleep": {"seconds": 60}}, stubborn)
            await bench.pod("a", containers=[parts], grace_s=60)
            await bench.phase("a", "Running")
            took_s, _ = await deleted(bench, "a", grace_s=10)
            assert 12 < took_s < 15
        await bench.containerd.close()

    run_virtual(main)


def test_a_pre_stop_hook_that_fails_is_told_and_stops_nothing() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", containers=[container("preStop", {"exec": {"command": ["false"]}})])
            await bench.phase("a", "Running")
            took_s, events = await deleted(bench, "a")
            assert took_s < 5
            assert ("FailedPreStopHook", "PreStopHook failed") in events
        await bench.containerd.close()

    run_virtual(main)


def test_a_container_whose_post_start_hook_fails_is_killed_and_tried_again() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            parts = container("postStart", {"httpGet": {"path": "/up", "port": 80}})
            await bench.pod("a", containers=[parts], annotations={FAILING: "postStart"}, policy="Always", grace_s=2)
            waits = await bench.until("a", lambda pod: "PostStartHookError" in str(pod["status"]))
            entry = waits["status"]["containerStatuses"][0]
            assert entry["state"]["waiting"]["message"].startswith(
                'HTTP lifecycle hook (/up) for Container "main" in Pod'
            )
            events = [(reason, said) for _, reason, said, _ in await bench.events("a")]
            order = [("FailedPostStartHook", "PostStartHook failed"), ("Killing", "FailedPostStartHook")]
            assert [event for event in events if event in order] == order
            await bench.until("a", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] >= 2)
        await bench.containerd.close()

    run_virtual(main)


def test_a_command_s_post_start_hook_is_told_with_its_code_and_output() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            parts = container("postStart", {"exec": {"command": ["sh", "-c", "echo oh; exit 3"]}})
            await bench.pod("a", containers=[parts], policy="Always", grace_s=2)
            waits = await bench.until("a", lambda pod: "PostStartHookError" in str(pod["status"]))
            text = waits["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
            assert text.startswith(
                'Exec lifecycle hook ([sh -c echo oh; exit 3]) for Container "main" in Pod "a_default('
            )
            assert "failed - error: command 'sh -c echo oh; exit 3' exited with 3: oh\n, message: \"oh\n\"" in text
        await bench.containerd.close()

    run_virtual(main)


def test_sidecars_end_after_the_containers_that_they_serve_the_last_one_first() -> None:
    async def main() -> None:
        bench = Bench()
        ends: dict[str, float] = {}

        def heard(uid: str) -> None:
            sandbox = bench.containerd.sandbox(uid)
            for name, starts in sandbox.instances.items() if sandbox else ():
                if starts and not starts[-1].running:
                    ends.setdefault(name, asyncio.get_running_loop().time())

        def slow(name: str, **parts: Any) -> dict[str, Any]:
            words = ["sh", "-c", "trap 'sleep 3; exit 0' TERM; sleep 9999"]
            return {"name": name, "image": "busybox", "command": words, **parts}

        bench.containerd.listen(heard)
        async with bench.running():
            inits = [slow("first", restartPolicy="Always"), slow("second", restartPolicy="Always")]
            await bench.pod("a", containers=[slow("main")], inits=inits, grace_s=8)
            await bench.phase("a", "Running")
            began = asyncio.get_running_loop().time()
            await bench.kube.delete(PODS, "a", namespace="default")
            await bench.until("a", lambda pod: len(ends) == 3)
            spans = [round(ends[name] - began) for name in ("main", "second", "first")]
            assert spans[0] in (3, 4)
            assert spans[1] == spans[0] + 3
            assert spans[2] == spans[0] + 5  # two seconds of the grace are left, and two are given at least
            said = [said for _, reason, said, _ in await bench.events("a") if reason == "Killing"]
            assert said == [f"Stopping container {name}" for name in ("main", "second", "first")]
        await bench.containerd.close()

    run_virtual(main)
