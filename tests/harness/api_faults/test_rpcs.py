"""RPCs that are paused: of device plugins, DRA drivers, podresources, extenders and webhooks."""

import asyncio
import random

import pytest
import yaml

from mews.harness.api_faults.control import ApiFaults
from mews.harness.api_faults.rpcs import (
    OF_KUBELETS,
    OF_SERVICES,
    RPCS,
    PausableFolder,
    PausableRegistry,
    PausableService,
)
from mews.harness.clock import run_virtual
from mews.harness.engine import Engine
from mews.harness.fuzz.api_faults import API_KINDS, draw_api_fault
from mews.harness.journal import Journal
from mews.harness.options import RunOptions
from mews.harness.ports.deviceplugin import LocalKubeletFolder
from mews.harness.ports.dra import LocalDraNode
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario
from mews.kube.clock import Pace
from mews.kube.deviceplugin.port import PluginDevice, PluginOptions
from mews.kube.dra.port import ClaimReference, DeviceHealth, PreparedClaim
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.system.services import ServiceReply

KUBELET = "kubelet/host-1"
DEVICE = PluginDevice("0", "Healthy")


class Plugin:
    """A device plugin that answers at once; its list changes at 5 s."""

    async def options(self):
        return PluginOptions()

    async def list_and_watch(self):
        yield (DEVICE,)
        await asyncio.sleep(5)
        yield ()
        await asyncio.sleep(1000)

    async def preferred_allocation(self, available, must_include, size):
        return ("0",)

    async def allocate(self, requests):
        return ()

    async def pre_start(self, devices):
        return None


class Driver:
    """A DRA driver that answers at once."""

    reports_health = True

    async def prepare(self, claims):
        return {claim.uid: PreparedClaim() for claim in claims}

    async def unprepare(self, claims):
        return {claim.uid: "" for claim in claims}

    async def watch_health(self):
        yield (DeviceHealth("pool", "gpu-0"),)
        await asyncio.sleep(1000)


class Resources:
    """podresources that answer at once."""

    async def list(self):
        return ()

    async def get(self, name, namespace):
        return (name, namespace)

    async def allocatable(self):
        return ()


class Peers:
    """A kubelet's peers behind a gate: a call of each RPC by its name."""

    def __init__(self, faults):
        self.faults = faults
        self.gate = faults.gate(KUBELET)

    async def open(self):
        local, node = LocalKubeletFolder(), LocalDraNode()
        folder = PausableFolder(local, self.gate)
        await folder.start(None, Resources())
        await local.link().serve("plugin.sock", Plugin())
        await node.link().serve("gpu.example.com", Driver())
        plugin = await folder.dial("plugin.sock")
        registry = PausableRegistry(node, self.gate)
        (socket,) = registry.sockets().values()
        assert registry.sockets() == dict.fromkeys(node.sockets(), socket)  # a driver is the same one as before
        resources = local.pod_resources()
        claims = [ClaimReference("default", "u", "claim")]
        services = {}

        class Port:
            async def serve(self, handler):
                services["handler"] = handler

        async def reply(method, path, body):
            return ServiceReply(200, body)

        await PausableService(Port(), self.gate, "extender").serve(reply)
        return {
            "GetDevicePluginOptions": plugin.options,
            "ListAndWatch": lambda: anext(plugin.list_and_watch()),
            "GetPreferredAllocation": lambda: plugin.preferred_allocation(["0"], [], 1),
            "Allocate": lambda: plugin.allocate([["0"]]),
            "PreStartContainer": lambda: plugin.pre_start(["0"]),
            "NodePrepareResources": lambda: socket.prepare(claims),
            "NodeUnprepareResources": lambda: socket.unprepare(claims),
            "NodeWatchResources": lambda: anext(socket.watch_health()),
            "List": resources.list,
            "Get": lambda: resources.get("a", "default"),
            "GetAllocatableResources": resources.allocatable,
            "HTTP": lambda: services["handler"]("POST", "/filter", b"{}"),
        }


def faults_of(journal=None):
    kube = InProcessKube(fresh_store(lambda: 0.0, random.Random(1)))
    return ApiFaults(kube, journal or Journal(lambda: 0.0), Pace(), random.Random(1))


def test_every_rpc_has_its_case():
    async def main():
        return set(await Peers(faults_of()).open())

    assert run_virtual(main) == set(RPCS)


@pytest.mark.parametrize("rpc", RPCS)
def test_an_rpc_that_is_paused_waits_and_all_others_go_on(rpc):
    async def main():
        faults, took = faults_of(), {}
        calls = await Peers(faults).open()
        await faults.add(KUBELET, {"kind": "paused-rpc", "operation": rpc, "expires_s": 20})
        loop = asyncio.get_running_loop()

        async def timed(name):
            begun_s = loop.time()
            await calls[name]()
            took[name] = loop.time() - begun_s

        await asyncio.gather(*map(timed, calls))
        return took

    assert run_virtual(main) == {name: 20.0 if name == rpc else 0.0 for name in RPCS}


def test_an_answer_waits_that_comes_while_it_is_paused():
    class Slow(Plugin):
        async def allocate(self, requests):
            await asyncio.sleep(3)
            return ()

    async def main():
        faults = faults_of()
        local = LocalKubeletFolder()
        await local.link().serve("plugin.sock", Slow())
        plugin = await PausableFolder(local, faults.gate(KUBELET)).dial("plugin.sock")
        calling = asyncio.ensure_future(plugin.allocate([["0"]]))
        await asyncio.sleep(1)
        await faults.add(KUBELET, {"kind": "paused-rpc"})
        await asyncio.sleep(9)
        assert not calling.done()
        faults.clear(KUBELET)
        await calling
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 10.0


POD = {
    "kind": "Pod",
    "metadata": {"name": "trainer"},
    "spec": {
        "schedulerName": "kubecomp-scheduler",
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {"falcon.com/gpu": "5"}}}],
    },
}


@pytest.fixture
def written(tmp_path):
    def write(*steps, **more):
        head = {"apiVersion": "mews/v1", "kind": "Scenario", "metadata": {"name": "x"}, "hardware": "demo"}
        path = tmp_path / "x.yaml"
        path.write_text(yaml.safe_dump({**head, "steps": list(steps), **more}))
        return path

    return write


def pause(component=KUBELET, **spec):
    return {"fault": {"component": component, "add": {"kind": "paused-rpc", **spec}}}


def played(path):
    scenario = load_scenario(path)
    return Engine(RunOptions()).attempt(scenario, scenario.seed)


@pytest.mark.parametrize("rpc", ["ListAndWatch", "Allocate", "List", None])
def test_a_pod_waits_for_the_rpc_and_runs_once_it_goes_on(written, rpc):
    run = played(
        written(
            pause(**({} if rpc is None else {"operation": rpc})),
            {"apply": POD},
            {"hold": {"for": "40s", "check": {"pod": {"name": "trainer", "phase": "Pending"}}}},
            {"fault": {"clear": KUBELET}},
            {"wait": {"pod": {"name": "trainer", "phase": "Running"}}, "timeout": "2m"},
        )
    )
    assert run.result.verdict == "passed", run.result.reason
    fired = [line.fields["verb"] for line in run.lines if (line.layer, line.event) == ("fault", "fired")]
    assert set(fired) <= {*OF_KUBELETS}
    assert rpc in (None, *fired)


def test_who_judges_a_run_does_not_wait_for_a_paused_list(written):
    run = played(written({"apply": POD}, {"sleep": "60s"}, pause(operation="List"), judgedBy="laws"))
    assert run.result.verdict == "passed", run.result.reason


def test_an_extender_that_does_not_answer_keeps_pods_waiting(written):
    container = {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {"aliyun.com/gpu-mem": 4}}}
    share = {"kind": "Pod", "metadata": {"name": "share"}, "spec": {"containers": [container]}}
    run = played(
        written(
            pause("gpushare-extender", operation="HTTP"),
            {"apply": share},
            {"hold": {"for": "40s", "check": {"pod": {"name": "share", "phase": "Pending"}}}},
            {"fault": {"clear": "gpushare-extender"}},
            {"wait": {"pod": {"name": "share", "phase": "Running"}}, "timeout": "2m"},
            hardware="seed-001",
            stack={"kubecomp": None, "gpushare": {"nodes": ["n1", "n2", "n3"]}},
        )
    )
    assert run.result.verdict == "passed", run.result.reason


def test_a_webhook_that_does_not_answer_rewrites_no_pod(written):
    container = {"name": "main", "image": "mews/gpu-hold", "resources": {"requests": {"nvidia.com/gpu": "2"}}}
    pod = {"kind": "Pod", "metadata": {"name": "two"}, "spec": {"containers": [container]}}
    koordinator = {"nodes": ["four", "rdma-fpga"], "webhook": True}

    def run_with(*steps):
        stack = {"kubecomp": None, "koordinator": koordinator}
        return played(written({"sleep": "15s"}, *steps, {"apply": pod}, hardware="seed-004", stack=stack))

    assert run_with().result.verdict == "passed"
    run = run_with(pause("koord-webhook", operation="HTTP"))
    assert (run.result.verdict, "Limit must be set" in run.result.reason) == ("failed", True), run.result.reason
    begun, failed = (line.t for line in run.lines if (line.layer, line.fields.get("do")) == ("step", "apply"))
    assert failed - begun == pytest.approx(10)  # the webhook's timeout; its policy is to ignore that it failed


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (pause("scheduler"), "component: 'scheduler': must be one of kubelet/host-1"),
        (pause(operation="HTTP"), "operation: 'HTTP': must be one of"),
        (pause(operation="allocate"), "'allocate'"),
        (pause(hold_s=3), "unknown key 'hold_s'"),
    ],
)
def test_what_has_no_such_rpc_is_refused_as_the_file_is_read(written, step, message):
    with pytest.raises(ScenarioError) as refused:
        load_scenario(written(step))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_who_has_no_rpcs_is_refused_on_a_running_cluster():
    async def main():
        faults = faults_of()
        faults.stand_between("scheduler")
        faults.gate(KUBELET)
        with pytest.raises(ValueError, match="scheduler has no RPCs: must be one of kubelet/host-1"):
            await faults.add("scheduler", {"kind": "paused-rpc"})

    run_virtual(main)


def test_the_fuzzer_draws_pauses_that_end():
    assert "paused-rpc" in API_KINDS
    drawn = [draw_api_fault("paused-rpc", random.Random(seed)) for seed in range(200)]
    assert {each["operation"] for each in drawn} == {*OF_KUBELETS}
    assert all(each["expires_s"] > 0 for each in drawn)
    assert set(OF_KUBELETS).isdisjoint(OF_SERVICES)
