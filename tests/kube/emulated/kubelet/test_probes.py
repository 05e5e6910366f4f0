"""Probes of simulated containers in virtual time: who is asked when, and what follows from the answers."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.objects import Object, condition_of
from mews.kube.api.resources import PODS
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.handlers import Exec, GrpcCheck, HttpGet, Sleep, TcpSocket, action_of, timed_out
from mews.kube.emulated.kubelet.probe import LIVENESS, READINESS, ProbeTally, probes_of
from mews.kube.emulated.kubelet.unhealthy_window import FAILING, UnhealthyWindow, illnesses_of
from tests.kube.emulated.kubelet.bench import Bench

WEB = {"httpGet": {"path": "/healthz", "port": 8080}}


def container(name: str = "main", **parts: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox", "command": ["sleep", "100000"], **parts}


def probe(handler: dict[str, Any] = WEB, **parts: Any) -> dict[str, Any]:
    return {**handler, "periodSeconds": 2, **parts}


def main_of(pod: Object) -> Object:
    return pod["status"]["containerStatuses"][0]


def test_a_container_with_a_readiness_probe_is_ready_once_it_answers_and_no_more_when_it_stops() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await asyncio.sleep(30)
            parts = container(readinessProbe=probe(failureThreshold=2))
            await bench.pod(
                "a", containers=[parts], annotations={FAILING: "readiness:0-9, readiness:30-"}, policy="Always"
            )
            running = await bench.phase("a", "Running")
            assert (main_of(running)["ready"], main_of(running)["started"]) == (False, True)
            assert condition_of(running, "Ready")["message"] == "containers with unready status: [main]"
            ready = await bench.until("a", lambda pod: main_of(pod)["ready"], 20)
            assert {c["type"]: c["status"] for c in ready["status"]["conditions"]}["ContainersReady"] == "True"
            await asyncio.sleep(19)
            gone = await bench.until("a", lambda pod: not main_of(pod)["ready"], 12)
            assert gone["status"]["phase"] == "Running"
            assert condition_of(gone, "Ready")["reason"] == "ContainersNotReady"
            events = await bench.events("a")
            text = "Readiness probe failed: HTTP probe failed with statuscode: 500"
            counts = [
                count for kind, reason, said, count in events if (kind, reason, said) == ("Warning", "Unhealthy", text)
            ]
            assert len(counts) == 1
            assert counts[0] >= 6
            assert main_of(gone)["restartCount"] == 0
        await bench.containerd.close()

    run_virtual(main)


def test_a_container_that_fails_its_liveness_probe_is_killed_and_started_again() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await asyncio.sleep(30)
            parts = container(livenessProbe=probe(initialDelaySeconds=5))
            await bench.pod("a", containers=[parts], annotations={FAILING: "liveness:20-"}, policy="Always", grace_s=3)
            again = await bench.until(
                "a", lambda pod: pod["status"].get("phase") == "Running" and main_of(pod)["restartCount"] == 1, 60
            )
            last = main_of(again)["lastState"]["terminated"]
            assert (last["exitCode"], last["reason"]) == (143, "Error")
            events = [(reason, said) for _, reason, said, _ in await bench.events("a")]
            assert ("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500") in events
            assert ("Killing", "Container main failed liveness probe, will be restarted") in events
        await bench.containerd.close()

    run_virtual(main)


def test_liveness_failures_back_off_only_from_ends_that_came_before() -> None:
    async def main() -> None:
        bench = Bench()
        starts: list[float] = []
        async with bench.running():
            await asyncio.sleep(30)
            parts = container(livenessProbe=probe(failureThreshold=1, periodSeconds=1))
            await bench.pod("a", containers=[parts], annotations={FAILING: "liveness:4-"}, policy="Always", grace_s=1)
            for number in range(4):
                pod = await bench.until(
                    "a",
                    lambda pod, n=number: (
                        "containerStatuses" in pod["status"]
                        and main_of(pod)["restartCount"] == n
                        and "running" in main_of(pod)["state"]
                    ),
                    120,
                )
                starts.append(bench.containerd.sandbox(pod["metadata"]["uid"]).instances["main"][-1].started_at)
        gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
        assert gaps[0] < 10
        assert gaps[1] < 10
        assert 10 < gaps[2] < 40
        await bench.containerd.close()

    run_virtual(main)


def test_a_pod_that_never_restarts_ends_when_its_liveness_probe_fails() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod(
                "a", containers=[container(livenessProbe=probe())], annotations={FAILING: "liveness"}, grace_s=1
            )
            failed = await bench.phase("a", "Failed", 60)
            assert main_of(failed)["state"]["terminated"]["exitCode"] == 143
            assert ("Killing", "Container main failed liveness probe") in [
                (reason, said) for _, reason, said, _ in await bench.events("a")
            ]
        await bench.containerd.close()

    run_virtual(main)


def test_until_its_startup_probe_succeeds_a_container_is_not_started_and_not_asked_anything_else() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await asyncio.sleep(30)
            parts = container(startupProbe=probe(failureThreshold=30), livenessProbe=probe(), readinessProbe=probe())
            await bench.pod(
                "a", containers=[parts], annotations={FAILING: "startup:0-11, liveness:0-11"}, policy="Always"
            )
            running = await bench.phase("a", "Running")
            assert (main_of(running)["started"], main_of(running)["ready"]) == (False, False)
            ready = await bench.until("a", lambda pod: main_of(pod)["ready"], 30)
            assert main_of(ready)["started"] is True
            assert main_of(ready)["restartCount"] == 0
            said = {said for _, reason, said, _ in await bench.events("a") if reason == "Unhealthy"}
            assert said == {"Startup probe failed: HTTP probe failed with statuscode: 500"}
        await bench.containerd.close()

    run_virtual(main)


def test_a_container_that_never_starts_up_is_killed_with_the_probe_s_own_grace() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await asyncio.sleep(30)
            parts = container(
                startupProbe=probe(failureThreshold=2, terminationGracePeriodSeconds=4),
                command=["sh", "-c", "trap '' TERM; sleep 9999"],
            )
            await bench.pod("a", containers=[parts], annotations={FAILING: "startup"}, policy="OnFailure", grace_s=600)
            again = await bench.until(
                "a", lambda pod: pod["status"].get("phase") == "Running" and main_of(pod)["restartCount"] == 1, 60
            )
            assert main_of(again)["lastState"]["terminated"]["exitCode"] == 137
            events = [(reason, said) for _, reason, said, _ in await bench.events("a")]
            assert ("Killing", "Container main failed startup probe, will be restarted") in events
        await bench.containerd.close()

    run_virtual(main)


def test_what_follows_a_sidecar_waits_for_its_startup_probe() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await asyncio.sleep(30)
            proxy = container("proxy", restartPolicy="Always", startupProbe=probe(failureThreshold=30))
            await bench.pod("a", containers=[container()], inits=[proxy], annotations={FAILING: "proxy/startup:0-7"})
            waits = await bench.until(
                "a",
                lambda pod: "running" in (pod["status"].get("initContainerStatuses") or [{"state": {}}])[0]["state"],
            )
            assert waits["status"]["initContainerStatuses"][0]["started"] is False
            assert condition_of(waits, "Initialized")["message"] == "containers with incomplete status: [proxy]"
            assert main_of(waits)["state"] == {"waiting": {"reason": "PodInitializing"}}
            done = await bench.phase("a", "Running", 60)
            assert done["status"]["initContainerStatuses"][0]["started"] is True
            assert condition_of(done, "Initialized")["status"] == "True"
        await bench.containerd.close()

    run_virtual(main)


def test_a_sidecar_that_fails_its_liveness_probe_is_started_again_even_if_its_pod_never_restarts() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            proxy = container("proxy", restartPolicy="Always", livenessProbe=probe())
            await bench.pod(
                "a", containers=[container()], inits=[proxy], annotations={FAILING: "liveness:5-"}, grace_s=1
            )
            await bench.until(
                "a",
                lambda pod: (
                    (pod["status"].get("initContainerStatuses") or [{"restartCount": 0}])[0]["restartCount"] == 1
                ),
                60,
            )
            events = [(reason, said) for _, reason, said, _ in await bench.events("a")]
            assert ("Killing", "Init container proxy failed liveness probe") in events
            assert main_of(await bench.get("a"))["restartCount"] == 0
        await bench.containerd.close()

    run_virtual(main)


def test_an_exec_probe_is_played_and_cut_off_at_its_timeout() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            slow = {"exec": {"command": ["sleep", "5"]}}
            bad = {"exec": {"command": ["sh", "-c", "echo no; exit 4"]}}
            await bench.pod("slow", containers=[container(readinessProbe=probe(slow))])
            await bench.pod("bad", containers=[container(readinessProbe=probe(bad))])
            await asyncio.sleep(30)
            assert ("Warning", "Unhealthy", 'Readiness probe failed: command "sleep 5" timed out') in [
                event[:3] for event in await bench.events("slow")
            ]
            assert ("Warning", "Unhealthy", "Readiness probe failed: no\n") in [
                event[:3] for event in await bench.events("bad")
            ]
        await bench.containerd.close()

    run_virtual(main)


def test_a_restarted_kubelet_asks_again_before_it_believes_that_a_container_is_ready() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", containers=[container(readinessProbe=probe())], policy="Always")
            await bench.until("a", lambda pod: "containerStatuses" in pod["status"] and main_of(pod)["ready"], 60)
        async with bench.running():
            again = await bench.until("a", lambda pod: main_of(pod)["ready"], 60)
            assert main_of(again)["restartCount"] == 0
        await bench.containerd.close()

    run_virtual(main)


def test_no_probe_is_asked_of_a_pod_that_is_being_deleted() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            parts = container(livenessProbe=probe(), command=["sh", "-c", "trap '' TERM; sleep 9999"])
            await bench.pod("a", containers=[parts], annotations={FAILING: "liveness:15-"}, policy="Always", grace_s=40)
            await bench.phase("a", "Running")
            await bench.kube.delete(PODS, "a", namespace="default")
            await asyncio.sleep(30)
            assert "Unhealthy" not in [reason for _, reason, _, _ in await bench.events("a")]
        await bench.containerd.close()

    run_virtual(main)


@pytest.mark.parametrize(
    ("kind", "answers", "verdicts"),
    [
        (LIVENESS, [False, False, True, False, False, False], [None, None, True, None, None, False]),
        (READINESS, [True, True, False, False, False, True, True], [None, True, None, None, False, None, True]),
    ],
)
def test_results_in_a_row_make_a_verdict(kind: str, answers: list[bool], verdicts: list[bool | None]) -> None:
    spec = {"name": "main", f"{kind}Probe": {**WEB, "successThreshold": 1 if kind == LIVENESS else 2}}
    tally = ProbeTally(probes_of(spec)[0])
    assert [tally.take(answer) for answer in answers] == verdicts
    assert tally.held is (kind == LIVENESS)


def test_a_handler_names_its_address_as_the_kubelet_does() -> None:
    main = {"name": "main", "ports": [{"name": "web", "containerPort": 81}]}
    got = action_of({"httpGet": {"port": "web", "path": "x"}}, main, "10.0.0.9")
    assert got == HttpGet("10.0.0.9", 81, "/x")
    assert timed_out(got) == (
        'Get "http://10.0.0.9:81/x": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    )
    assert action_of({"tcpSocket": {"port": 5, "host": "h"}}, main, "10.0.0.9") == TcpSocket("h", 5)
    assert action_of({"exec": {"command": ["a", "b"]}}, main, "") == Exec(("a", "b"))
    assert action_of({"sleep": {"seconds": 3}}, main, "") == Sleep(3.0)
    assert action_of({"grpc": {"port": 3, "service": "s"}}, main, "h") == GrpcCheck("h", 3, "s")
    assert action_of({"telepathy": {}}, main, "h") is None


def test_an_illness_is_one_container_s_or_everybody_s() -> None:
    text = "readiness:0-10, proxy/liveness:60-"
    assert illnesses_of(text, "main") == (UnhealthyWindow("readiness", 0.0, 10.0),)
    assert illnesses_of(text, "proxy") == (UnhealthyWindow("readiness", 0.0, 10.0), UnhealthyWindow("liveness", 60.0))
    with pytest.raises(StartError, match=r"annotation mews.dev/failing: 'sick': must read \[container/\]PURPOSE"):
        illnesses_of("sick", "main")
