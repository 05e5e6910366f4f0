"""The components as real processes, against a real HTTP API, a real chassis server and kubelets on real gRPC."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.serve import ChassisServer
from mews.kube.api.objects import phase_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.clock import Clock, Pace, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.devices import MemoryCheckpoint
from mews.kube.emulated.kubelet.grpc_server import GrpcKubeletFolder
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.machine import Machine
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from mews.kube.scheduling.config import SchedulerProfile
from mews.systems.kubecomp.config_file import as_document
from tests.systems.kubecomp.world import config_of, hardware

pytestmark = pytest.mark.wall

SPEED = 20.0


@asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A component that must end with 0 on SIGTERM."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    made = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mews.systems.kubecomp", *arguments, env=env, stderr=asyncio.subprocess.PIPE
    )
    said = asyncio.ensure_future(made.stderr.read())
    try:
        yield made
    finally:
        if made.returncode is None:
            made.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(made.wait(), 60)
        text = (await said).decode()
    assert code == 0, text
    assert "Traceback" not in text, text


async def until(holds: Callable[[], Awaitable[bool]], what: str, timeout_s: float = 90.0) -> None:
    deadline = asyncio.get_running_loop().time() + timeout_s
    while not await holds():
        assert asyncio.get_running_loop().time() < deadline, what
        await asyncio.sleep(0.1)


@asynccontextmanager
async def cluster(folder: Path, dialect: str) -> AsyncIterator[tuple[InProcessKube, list[list[str]]]]:
    """API, chassis and kubelets of two hosts with two devices each; the command lines of all components."""
    found = hardware(2, 2)
    clock, pace = Clock.wall(), Pace(SPEED)
    store = fresh_store(clock.now, stream(1, "store"))
    kube = InProcessKube(store)
    chassis = ChassisServer(found, context=EmulationContext(speed=SPEED))
    api = ApiServer(store)
    async with AsyncExitStack() as stack:
        chassis.start()
        stack.callback(chassis.stop)
        await api.start()
        stack.push_async_callback(api.stop)
        access = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": api.url}}],
            "users": [{"name": "x", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(access))
        config = config_of(found)
        box = replace(config.chassis[0], endpoint=chassis.ready()["chassis"]["A"][dialect], dialect=dialect)
        (folder / "config.yaml").write_text(yaml.safe_dump(as_document(replace(config, chassis=(box,)))))
        common = ["--config", str(folder / "config.yaml"), "--kubeconfig", str(folder / "kubeconfig")]
        lines = [["scheduler", *common], ["reconfig-manager", *common]]
        kubelets = []
        for host in found.hosts:
            sockets = GrpcKubeletFolder(folder / host.name / "p", folder / host.name / "r")
            rng = stream(1, host.name)
            machine = Machine(
                spec=NodeSpec(host.name, cpus=192),
                containerd=Containerd(clock, rng, simulated=SimulatedRuntime(pace)),
                folder=sockets,
                checkpoint=MemoryCheckpoint(),
                images=load_images(),
                pace=pace,
            )
            context = Context(kube, clock, rng, logging.getLogger("kubelet"))
            kubelets.append(asyncio.ensure_future(machine.kubelet(context).run()))
            where = ["--device-plugins", str(sockets.plugins), "--pod-resources", str(sockets.pod_resources)]
            lines.append(["device-manager", *common, "--node", host.name, *where])
        try:
            yield kube, lines
        finally:
            for kubelet in kubelets:
                kubelet.cancel()
            await asyncio.gather(*kubelets, return_exceptions=True)


def sockets_in(folder: str) -> list[Path]:
    """The plugins' own."""
    return sorted(Path(folder).rglob("falcon.sock"))


def pod(name: str, gpus: int) -> dict[str, object]:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", "infinity"],
        "resources": {"limits": {"falcon.com/gpu": str(gpus)}},
    }
    spec = {"schedulerName": "kubecomp-scheduler", "restartPolicy": "Never", "containers": [container]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize("dialect", ["h3api", "resource-pool"])
def test_processes_move_a_device_for_a_pod_and_end_cleanly(dialect: str) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory(prefix="kc", dir="/tmp") as folder:
            async with cluster(Path(folder), dialect) as (kube, lines), AsyncExitStack() as stack:
                stack.callback(lambda: left.extend(sockets_in(folder)))
                for line in lines:
                    await stack.enter_async_context(process(*line))

                async def shown(host: str) -> bool:
                    node = next((n for n in (await kube.list(NODES)).items if n["metadata"]["name"] == host), {})
                    return (node.get("status", {}).get("allocatable") or {}).get("falcon.com/gpu") == "2"

                for host in ("host-1", "host-2"):
                    await until(lambda host=host: shown(host), f"{host} shows two devices")
                    await kube.patch(NODES, host, {"spec": {"taints": None}})
                await kube.create(PODS, pod("a", 3), namespace="default")

                async def runs() -> bool:
                    return phase_of(await kube.get(PODS, "a", namespace="default")) == "Running"

                await until(runs, "the pod runs")
                assert (await kube.get(PODS, "a", namespace="default"))["spec"]["nodeName"] == "host-1"
                assert len(sockets_in(folder)) == 2

    left: list[Path] = []
    asyncio.run(main())
    assert left == [], "an ended plugin's socket goes with it"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["reconfig-manager", "--config", "missing.yaml"], "missing.yaml: cannot be read: No such file or directory\n"),
        (
            ["scheduler", "--kubeconfig", "/no/such"],
            "kubeconfig /no/such: no such file\n",
        ),
        (["device-manager", "--node", "x"], "--node 'x': must be one of the configuration's nodes (host-1, host-2)\n"),
        (["scheduler", "--plugin", "nothing"], "plugin 'nothing': write it as module:callable\n"),
        (["scheduler", "--score", "json:nothing"], "plugin 'json:nothing': 'json' has no 'nothing'\n"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mews.systems.kubecomp.__main__ import main

    if "--config" not in arguments:
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(as_document(config_of(hardware(1, 1)))))
        arguments = [*arguments, "--config", str(path)]
    assert main(arguments) == 2
    assert capsys.readouterr().err == says


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["scheduler", "--plugin", "a:b", "--plugin-options", "[1]"], "--plugin-options"),
        (["reconfig-manager", "--score", "a:b"], "--plugin and --score are the scheduler's, not reconfig-manager's"),
    ],
)
def test_options_that_cannot_be_are_refused_with_their_name(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from mews.systems.kubecomp.__main__ import main

    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--config", "any.yaml"])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_a_plugin_and_a_score_of_the_users_shape_the_schedulers_profile() -> None:
    from mews.systems.kubecomp.__main__ import parser, profile
    from mews.systems.kubecomp.metrics import KubeCompMemoryMetrics
    from mews.systems.kubecomp.plugin import NAME

    config = config_of(hardware(1, 1))

    def shaped(*options: str) -> SchedulerProfile:
        return profile(parser().parse_args(["scheduler", "--config", "x", *options]), config, KubeCompMemoryMetrics())

    ours, scored, theirs = shaped(), shaped("--score", "operator:sub"), shaped("--plugin", "builtins:dict")
    assert ours.score_weights is scored.score_weights is None  # the default plugins score beside it
    alone = profile(
        parser().parse_args(["scheduler", "--config", "x"]), replace(config, scoring="alone"), KubeCompMemoryMetrics()
    )
    assert alone.score_weights == {NAME: 1}
    assert scored.plugins[-1].keywords["score"](3, 1) == 2  # type: ignore[attr-defined]
    assert theirs.score_weights is None
    assert theirs.plugins[-1]([("a", 1)]) == {"a": 1}  # type: ignore[arg-type, comparison-overlap]
    assert {profile.scheduler_name for profile in (ours, scored, theirs)} == {config.scheduler_name}
