"""Pods from their binding to their end, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.errors import BadRequestError, ServerError
from mews.kube.api.objects import Object, condition_of, name_of
from mews.kube.api.resources import EVENTS, PODS
from mews.kube.client.port import DeleteOptions, Patch
from mews.kube.emulated.kubelet.api import EmulatedKubeletApi
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError, PreStartError
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.system.profile import Delay, NodeState
from tests.kube.emulated.kubelet.bench import Bench


def test_a_bound_pod_runs_and_succeeds_with_the_kubelet_s_events() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", ["sh", "-c", "sleep 3"])
            running = await bench.phase("a", "Running")
            assert condition_of(running, "Ready")["status"] == "True"
            done = await bench.phase("a", "Succeeded")
            assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
            assert [reason for _, reason, _, _ in await bench.events("a")] == ["Pulled", "Created", "Started"]
        await bench.containerd.close()

    run_virtual(main)


def test_containers_outlive_their_kubelet_and_the_next_one_finishes_their_pods() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", ["sleep", "60"])
            before = await bench.phase("a", "Running")
        await asyncio.sleep(5)
        async with bench.running():
            await asyncio.sleep(10)
            after = await bench.get("a")
            assert after["status"] == before["status"]
            done = await bench.phase("a", "Succeeded")
            assert done["status"]["containerStatuses"][0]["restartCount"] == 0
        await bench.containerd.close()

    run_virtual(main)


def test_a_crash_loop_backs_off_longer_each_time() -> None:
    async def main() -> None:
        bench, started = Bench(), []
        bench.containerd.listen(lambda uid: started.append(bench.containerd.sandbox(uid)))
        async with bench.running():
            await bench.pod("a", ["sh", "-c", "sleep 1; exit 3"], policy="Always")
            texts: list[str] = []
            while len(texts) < 4:
                pod = await bench.until("a", lambda pod: waiting(pod) == "CrashLoopBackOff" and text(pod) not in texts)
                texts.append(text(pod))
            assert [part.split()[1] for part in texts] == ["10s", "20s", "40s", "1m20s"]
            assert texts[0] == f"back-off 10s restarting failed container=main pod=a_default({pod['metadata']['uid']})"
            assert pod["status"]["phase"] == "Running"
        await bench.containerd.close()

    run_virtual(main)


def waiting(pod: Object) -> str:
    return state(pod).get("waiting", {}).get("reason", "")


def text(pod: Object) -> str:
    return state(pod).get("waiting", {}).get("message", "")


def state(pod: Object) -> Object:
    return pod["status"].get("containerStatuses", [{"state": {}}])[0]["state"]


def test_on_failure_restarts_what_failed_and_ends_with_what_succeeded() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            inits = [{"name": "flaky", "image": "busybox", "command": ["false"]}]
            await bench.pod("bad", ["true"], policy="OnFailure", inits=inits)
            await bench.pod("good", ["sleep", "2"], policy="OnFailure")
            done = await bench.phase("good", "Succeeded")
            assert done["status"]["containerStatuses"][0]["restartCount"] == 0
            await bench.until("bad", lambda pod: pod["status"]["initContainerStatuses"][0]["restartCount"] >= 2)
            assert (await bench.get("bad"))["status"]["phase"] == "Pending"
        await bench.containerd.close()

    run_virtual(main)


def test_a_failed_init_container_of_a_pod_that_never_restarts_fails_it_before_its_main_runs() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            inits = [{"name": "prepare", "image": "busybox", "command": ["sh", "-c", "sleep 1; exit 2"]}]
            await bench.pod("a", ["sleep", "5"], inits=inits)
            failed = await bench.phase("a", "Failed")
            assert "running" not in str(failed["status"]["containerStatuses"])
            assert failed["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 2
            assert "containers with incomplete status: [prepare]" in str(failed["status"]["conditions"])
        await bench.containerd.close()

    run_virtual(main)


def test_a_sidecar_starts_before_the_main_container_and_is_stopped_after_it() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            inits = [{"name": "proxy", "image": "busybox", "command": ["sleep", "9999"], "restartPolicy": "Always"}]
            await bench.pod("a", ["sleep", "3"], inits=inits)
            running = await bench.phase("a", "Running")
            assert running["status"]["initContainerStatuses"][0]["ready"]
            done = await bench.phase("a", "Succeeded")
            proxy, main_one = done["status"]["initContainerStatuses"][0], done["status"]["containerStatuses"][0]
            assert proxy["state"]["terminated"]["finishedAt"] >= main_one["state"]["terminated"]["finishedAt"]
            reasons = [(reason, message) for _, reason, message, _ in await bench.events("a")]
            assert reasons[-1] == ("Killing", "Stopping container proxy")
        await bench.containerd.close()

    run_virtual(main)


def test_a_failing_pre_start_is_shown_and_tried_again_after_one_second_then_every_10_to_15() -> None:
    async def main() -> None:
        bench, at = Bench(), []
        error = PreStartError("device plugin PreStartContainer rpc failed with err: rpc error: code = Unknown desc = x")
        bench.devices.failing_starts = [error] * 3
        pre_start = bench.devices.pre_start

        async def noting(uid: str, container: str) -> None:
            at.append(asyncio.get_running_loop().time())
            await pre_start(uid, container)

        bench.devices.pre_start = noting  # type: ignore[method-assign]
        async with bench.running():
            await bench.pod("a", ["sleep", "5"])
            pod = await bench.until("a", lambda pod: "CreateContainerConfigError" in str(pod["status"]))
            assert pod["status"]["phase"] == "Pending"
            assert text(pod) == str(error)
            assert condition_of(pod, "PodReadyToStartContainers")["status"] == "True"
            await bench.phase("a", "Succeeded")
            first, second, third, fourth = at
            assert second - first <= 1.0
            assert all(10.0 <= span <= 15.0 for span in (third - second, fourth - third))
            events = await bench.events("a")
            assert ("Warning", "Failed", f"Error: {error}", 3) in events
        await bench.containerd.close()

    run_virtual(main)


def test_a_rejected_pod_is_failed_for_good_and_the_next_one_is_admitted_in_order() -> None:
    async def main() -> None:
        bench = Bench()
        bench.devices.refuse["b"] = AdmissionRejectedError("UnexpectedAdmissionError", "Allocate failed due to X")
        bench.devices.admission_s = 2.0
        async with bench.running() as kubelet:
            await asyncio.sleep(2)
            for name in ("c", "b", "a"):
                await bench.pod(name, ["sleep", "100"], policy="Always")
            await asyncio.sleep(1)
            assert bench.devices.admitted == []
            assert [name_of(one) for one in kubelet.active_pods()] == ["c"]
            await asyncio.sleep(6)
            assert bench.devices.admitted == ["c", "a"]
            pod = await bench.get("b")
            assert set(pod["status"]) == {
                *("phase", "reason", "message", "startTime", "qosClass", "observedGeneration"),
            }
            assert pod["status"]["message"] == "Pod was rejected: Allocate failed due to X"
            assert await bench.events("b") == [("Warning", "UnexpectedAdmissionError", "Allocate failed due to X", 1)]
            assert [name_of(one) for one in kubelet.active_pods()] == ["a", "c"]
            assert ("rejected", "b") in [(event, fields["pod"][-1]) for event, fields in bench.notes]
        await bench.containerd.close()

    run_virtual(main)


def test_an_unknown_image_is_pulled_in_vain_with_back_off() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", image="nobody/knows:1")
            pod = await bench.until("a", lambda pod: waiting(pod) == "ErrImagePull")
            assert "nobody/knows:1: not found" in text(pod)
            pod = await bench.until("a", lambda pod: waiting(pod) == "ImagePullBackOff")
            assert text(pod).startswith('Back-off pulling image "nobody/knows:1": ErrImagePull: failed to pull')
            events = await bench.events("a")
            assert ("Warning", "Failed", "Error: ErrImagePull") in [event[:3] for event in events]
            assert ("Normal", "BackOff", 'Back-off pulling image "nobody/knows:1"') in [event[:3] for event in events]
        await bench.containerd.close()

    run_virtual(main)


def test_an_active_deadline_ends_a_pod() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", ["sleep", "9999"], activeDeadlineSeconds=20)
            failed = await bench.phase("a", "Failed", 30)
            assert failed["status"]["reason"] == "DeadlineExceeded"
            assert failed["status"]["message"] == "Pod was active on the node longer than the specified deadline"
        await bench.containerd.close()

    run_virtual(main)


def test_an_active_deadline_that_is_set_or_shortened_later_ends_a_pod() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", ["sleep", "9999"])
            await bench.pod("b", ["sleep", "9999"], activeDeadlineSeconds=900)
            for name in ("a", "b"):
                await bench.phase(name, "Running")
                change = {"spec": {"activeDeadlineSeconds": 20}}
                await bench.kube.patch(PODS, name, change, namespace="default")
                failed = await bench.phase(name, "Failed", 30)
                assert failed["status"]["reason"] == "DeadlineExceeded"
        await bench.containerd.close()

    run_virtual(main)


def test_pods_deleted_or_removed_while_the_kubelet_is_down_end_when_it_is_back() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            for name in ("graceful", "forced"):
                await bench.pod(name, ["sleep", "9999"])
                await bench.phase(name, "Running")
        await bench.kube.delete(PODS, "graceful", namespace="default")
        await bench.kube.delete(PODS, "forced", namespace="default", options=DeleteOptions(grace_period_s=0))
        await asyncio.sleep(300)
        assert (await bench.get("graceful"))["status"]["phase"] == "Running"
        assert sum(sandbox.instances["main"][-1].running for sandbox in bench.containerd.sandboxes()) == 2
        async with bench.running():
            await asyncio.sleep(5)
            assert (await bench.kube.list(PODS)).items == []
            assert bench.containerd.sandboxes() == ()
        await bench.containerd.close()

    run_virtual(main)


def test_a_pod_deleted_while_it_waits_for_its_sandbox_never_starts() -> None:
    async def main() -> None:
        bench = Bench(overhead=lambda pod, node: Delay(start_s=60.0))
        async with bench.running():
            await asyncio.sleep(2)
            await bench.pod("a", ["sleep", "10"])
            await asyncio.sleep(20)
            await bench.kube.delete(PODS, "a", namespace="default")
            await asyncio.sleep(3)
            assert (await bench.kube.list(PODS)).items == []
            assert not [event for event, _ in bench.notes if event == "container-started"]
        await bench.containerd.close()

    run_virtual(main)


def test_a_testbed_s_overhead_delays_start_and_end_and_sees_the_idle_devices() -> None:
    async def main() -> None:
        states: list[NodeState] = []

        def model(pod: Object, node: NodeState) -> Delay:
            states.append(node)
            return Delay(start_s=7.0, stop_s=2.0)

        bench, loop = Bench(overhead=model), asyncio.get_running_loop()
        bench.devices.resources = {"falcon.com/gpu": (4, 4)}
        gpus = {"name": "main", "image": "busybox", "command": ["sleep", "100"]}
        gpus["resources"] = {"limits": {"falcon.com/gpu": "3"}}
        async with bench.running():
            await asyncio.sleep(2)
            begun = loop.time()
            await bench.pod("a", containers=[gpus])
            await bench.phase("a", "Running")
            assert 7.5 <= loop.time() - begun <= 10.0
            await bench.pod("b", ["sleep", "1"])
            await bench.phase("a", "Succeeded")
            assert 109.0 <= loop.time() - begun <= 114.0
            assert [(state.devices, state.held, state.idle) for state in states] == [(4, 0, 4), (4, 3, 1)]
        await bench.containerd.close()

    run_virtual(main)


def test_an_images_variables_are_those_that_neither_a_plugin_nor_the_pod_sets() -> None:
    async def main() -> None:
        bench = Bench()
        variables = {"OF_IMAGE": "image", "OF_PLUGIN": "image", "OF_POD": "image"}
        log = "${OF_IMAGE} ${OF_PLUGIN} ${OF_POD}\n"
        bench.images = load_images(own={"team/app": {"simulate": {"duration_s": 1, "log": log}, "env": variables}})
        bench.devices.envs = {"OF_PLUGIN": "plugin", "OF_POD": "plugin"}
        container = {"name": "main", "image": "team/app", "env": [{"name": "OF_POD", "value": "pod"}]}
        async with bench.running():
            await bench.pod("a", containers=[container])
            await bench.phase("a", "Succeeded")
            api = EmulatedKubeletApi(bench.containerd, NodeSpec("n1"))
            assert [chunk async for chunk in api.log("default", "a", "main")] == [b"image plugin pod\n"]

    run_virtual(main)


def test_a_container_sees_its_plugins_environment_its_own_and_the_downward_api() -> None:
    async def main() -> None:
        bench = Bench()
        bench.devices.envs = {"NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2", "IN_BOTH": "plugin"}
        container = {
            "name": "main",
            "image": "busybox",
            "command": ["sh", "-c", "env; echo $(GREETING); sleep 1000"],
            "env": [
                {"name": "IN_BOTH", "value": "pod"},
                {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "GREETING", "value": "hello from $(WHERE)"},
            ],
        }
        async with bench.running():
            await bench.pod("a", containers=[container])
            pod = await bench.phase("a", "Running")
            api = EmulatedKubeletApi(bench.containerd, NodeSpec("n1"))
            shown = b"".join([chunk async for chunk in api.log("default", "a", "main")]).decode().splitlines()
            assert shown[-1] == "hello from host-1"
            assert {"IN_BOTH=pod", "WHERE=host-1", f"ADDRESS={pod['status']['podIP']}"} <= set(shown)
            assert "NVIDIA_VISIBLE_DEVICES=GPU-1,GPU-2" in shown
            started = next(fields for event, fields in bench.notes if event == "container-started")
            assert started["env"] == {"IN_BOTH": "pod", "NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2"}
            printed = await api.exec("default", "a", "main", ["printenv", "NVIDIA_VISIBLE_DEVICES"])
            assert (printed.exit_code, printed.stdout) == (0, b"GPU-1,GPU-2\n")
            with pytest.raises(ServerError, match="simulated"):
                await api.exec("default", "a", "main", ["nvidia-smi"])
            with pytest.raises(BadRequestError, match="previous terminated container"):
                _ = [chunk async for chunk in api.log("default", "a", "main", previous=True)]
        await bench.containerd.close()

    run_virtual(main)


def test_a_log_is_followed_until_its_container_ends_and_tailed() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", ["sh", "-c", "echo one; sleep 5; echo two; sleep 5; echo three"])
            await bench.phase("a", "Running")
            api = EmulatedKubeletApi(bench.containerd, NodeSpec("n1"))
            assert [c async for c in api.log("default", "a", "main", follow=True)] == [b"one\n", b"two\n", b"three\n"]
            assert [c async for c in api.log("default", "a", "main", tail_lines=2)] == [b"two\nthree\n"]
            assert [c async for c in api.log("default", "a", "main", tail_lines=0)] == []
        await bench.containerd.close()

    run_virtual(main)


def test_two_runs_of_one_seed_are_the_same_update_for_update() -> None:
    async def main() -> str:
        bench = Bench(seed=7)
        async with bench.running():
            for name in ("a", "b", "c"):
                await bench.pod(name, ["sh", "-c", "sleep 1; exit 1"], policy="Always")
            await asyncio.sleep(120)
            pods, events = await bench.kube.list(PODS), await bench.kube.list(EVENTS)
        await bench.containerd.close()
        return str((pods.items, events.items))

    assert run_virtual(main) == run_virtual(main)


def test_a_pod_that_the_machine_cannot_hold_is_out_of_it() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await asyncio.sleep(2)
            for name, cpu in (("first", "1500m"), ("second", "600m"), ("third", "500m")):
                main_one = {"name": "main", "image": "busybox", "command": ["sleep", "100"]}
                main_one["resources"] = {"requests": {"cpu": cpu}}
                await bench.pod(name, containers=[main_one])
            failed = await bench.phase("second", "Failed")
            assert failed["status"]["reason"] == "OutOfcpu"
            assert failed["status"]["message"] == (
                "Pod was rejected: Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000"
            )
            await bench.phase("third", "Running")
        await bench.containerd.close()

    run_virtual(main)


def test_a_condition_that_somebody_else_changed_is_written_again() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", ["sleep", "100"])
            running = await bench.phase("a", "Running")
            conditions = [
                {**entry, "status": "False"} if entry["type"] == "Ready" else entry
                for entry in running["status"]["conditions"]
            ]
            change = {"status": {"conditions": conditions}}
            await bench.kube.patch(PODS, "a", change, namespace="default", subresource="status")
            await bench.until("a", lambda pod: condition_of(pod, "Ready")["status"] == "True", 1)
        await bench.containerd.close()

    run_virtual(main)


def test_a_pod_deleted_right_after_its_binding_ends_without_having_run() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await asyncio.sleep(2)
            await bench.pod("a", ["sleep", "100"])
            await bench.kube.delete(PODS, "a", namespace="default")
            await asyncio.sleep(4)
            assert (await bench.kube.list(PODS)).items == []
            assert bench.containerd.sandboxes() == ()
            assert [event for event, _ in bench.notes] == ["pod-ended"]
        await bench.containerd.close()

    run_virtual(main)


def test_a_pod_is_ready_when_its_gates_are_open_too() -> None:
    async def main() -> None:
        bench = Bench()

        async def decide(status: str) -> None:
            change = {"status": {"conditions": [{"type": "x.test/open", "status": status}]}}
            await bench.kube.patch(PODS, "a", change, kind=Patch.STRATEGIC, namespace="default", subresource="status")

        def is_ready(pod: Object) -> bool:
            return condition_of(pod, "Ready")["status"] == "True"

        async with bench.running():
            await bench.pod("a", ["sleep", "600"], readinessGates=[{"conditionType": "x.test/open"}])
            running = await bench.phase("a", "Running")
            assert condition_of(running, "ContainersReady")["status"] == "True"
            closed = condition_of(running, "Ready")
            assert (closed["status"], closed["reason"]) == ("False", "ReadinessGatesNotReady")
            assert closed["message"] == 'corresponding condition of pod readiness gate "x.test/open" does not exist.'
            await decide("True")
            await bench.until("a", is_ready)
            await decide("False")
            shut = condition_of(await bench.until("a", lambda pod: not is_ready(pod)), "Ready")
            assert shut["message"] == 'the status of pod readiness gate "x.test/open" is not "True", but False'
        await bench.containerd.close()

    run_virtual(main)


def test_what_waits_for_an_init_container_that_failed_for_good_goes_on_waiting() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            inits = [
                {"name": "fails", "image": "busybox", "command": ["false"]},
                {"name": "next", "image": "busybox", "command": ["true"]},
            ]
            await bench.pod("a", ["true"], inits=inits)
            status = (await bench.phase("a", "Failed"))["status"]
            assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 1
            waiting = {"waiting": {"reason": "PodInitializing"}}
            assert status["initContainerStatuses"][1]["state"] == waiting
            assert status["containerStatuses"][0]["state"] == waiting
        await bench.containerd.close()

    run_virtual(main)
