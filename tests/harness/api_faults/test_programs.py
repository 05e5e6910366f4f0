"""Faults of the API for unmodified programs in Go: kube-scheduler in a scenario, and the program of NVIDIA's device
plugin that watches the API (config-manager), by hand behind ``mews proxy``."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml

from mews.harness.clusters.programs.finding import SCHEDULER, find, needed
from mews.harness.errors import RequirementError
from mews.harness.museum.museum import bug_of

pytestmark = pytest.mark.wall

MEWS = [sys.executable, "-m", "mews.harness.cli"]
HELD_S = 3


def pod(name):
    return {
        "apply": {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "app"}]}}
    }


def fault(**spec):
    return {"fault": {"component": "default-scheduler", "add": spec}}


def waits(name):
    return {"hold": {"for": f"{HELD_S}s", "check": {"pod": {"name": name, "phase": "Pending"}}}}


def runs(name):
    return {"wait": {"pod": {"name": name, "phase": "Running"}}, "timeout": "30s"}


CLEAR = {"fault": {"clear": "default-scheduler"}}
PLAYED = {
    "a lagging watch": [
        fault(kind="lagging-watch", by_s=HELD_S + 2, resource="pods"), pod("a"), waits("a"), runs("a"), CLEAR
    ],
    "a stale list": [
        fault(kind="stale-reads"), {"restart": "default-scheduler"}, pod("b"), waits("b"), CLEAR, runs("b")
    ],
    "a frozen API": [fault(kind="frozen-api"), pod("c"), waits("c"), CLEAR, runs("c")],
    "a frozen process": [fault(kind="frozen-process"), pod("d"), waits("d"), CLEAR, runs("d")],
    "a lost answer": [
        fault(kind="lost-answer", operation="create", resource="pods/binding"), pod("e"), runs("e"),
        {"wait": {"journal": {"occurs": [{"event": "fired", "kind": "lost-answer"}]}}},
    ],
}  # fmt: skip
"""Each begins with a scheduler that has nothing to do, and ends so."""


@pytest.mark.parametrize("cluster", ["embedded", pytest.param("control-plane", marks=pytest.mark.nightly)])
def test_an_unmodified_kube_scheduler_gets_the_faults(cluster, tmp_path):
    if find(SCHEDULER) is None:
        pytest.skip("kube-scheduler is neither in KUBEBUILDER_ASSETS nor on PATH")
    if cluster == "control-plane":
        try:
            needed()
        except RequirementError as error:
            pytest.skip(str(error))
    scenario = {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": "struck"},
        "hardware": "demo",
        "images": {"app": {"simulate": {"duration_s": 3600}}},
        "stack": {"kubecomp": None, "defaultScheduler": {"program": "kube-scheduler"}},
        "steps": [pod("first"), runs("first"), *(step for steps in PLAYED.values() for step in steps)],
    }
    path = tmp_path / "struck.yaml"
    path.write_text(yaml.safe_dump(scenario, sort_keys=False))
    command = [*MEWS, "run", str(path), "--cluster", cluster, "--time", "wall", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=tmp_path)
    (result,) = json.loads(done.stdout)
    assert (result["verdict"], result["reason"]) == ("passed", ""), done.stderr


# NVIDIA's config-manager


class Manager:
    """It runs behind a proxy, and links the configuration that its node's label names."""

    def __init__(self, kubeconfig, environment, folder):
        self.kubeconfig, self.environment, self.folder = kubeconfig, environment, folder

    @property
    def configuration(self):
        link = self.folder / "config"
        return Path(os.readlink(link)).name if link.is_symlink() else ""

    def mews(self, *words):
        done = subprocess.run([*MEWS, *words], env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    def label(self, value):
        """Past the proxy."""
        import asyncio

        from mews.kube.api.resources import NODES
        from mews.kube.client.http import HttpKube

        async def patch():
            kube = HttpKube.from_kubeconfig(self.kubeconfig)
            labels = {"nvidia.com/device-plugin.config": value}
            await kube.patch(NODES, "n", {"metadata": {"labels": labels}})
            await kube.close()

        asyncio.run(patch())

    def becomes(self, name, within_s=20.0):
        end = time.monotonic() + within_s
        while self.configuration != name:
            assert time.monotonic() < end, f"{name} within {within_s:g} s; it is {self.configuration!r}"
            time.sleep(0.05)


@pytest.fixture
def manager():
    program = bug_of("k8s-device-plugin-1645").program
    path = program.path(has_bug=False)
    if not path.is_file():
        pytest.skip(f"{path} is missing; get it with: {program.build(has_bug=False)}")
    with tempfile.TemporaryDirectory(prefix="m") as given, contextlib.ExitStack() as stack:
        folder = Path(given)
        environment = {**os.environ, "XDG_RUNTIME_DIR": given, "XDG_STATE_HOME": given}

        def started(*words, **options):
            process = stack.enter_context(subprocess.Popen(words, env=environment, **options))
            stack.callback(process.send_signal, signal.SIGTERM)
            return process

        waiting = "import os, time; print(os.environ['KUBECONFIG'], flush=True); time.sleep(600)"
        server = started(
            *MEWS, "envtest", "--bare", "--", sys.executable, "-c", waiting, stdout=subprocess.PIPE, text=True
        )
        kubeconfig = server.stdout.readline().strip()
        proxy = started(*MEWS, "proxy", "--kubeconfig", kubeconfig, "--json", stdout=subprocess.PIPE, text=True)
        ready = json.loads(proxy.stdout.readline())
        (folder / "available").mkdir()
        for name in ("default", "one", "two"):
            (folder / "available" / name).touch()
        managed = Manager(kubeconfig, environment, folder)
        _create_node(kubeconfig)
        words = [
            str(path), "--kubeconfig", ready["kubeconfig"], "--node-name", "n", "--send-signal=false",
            "--config-file-srcdir", str(folder / "available"), "--config-file-dst", str(folder / "config"),
            "--default-config", "default",
        ]  # fmt: skip
        started(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        managed.becomes("default")
        yield managed


def _create_node(kubeconfig):
    import asyncio

    from mews.kube.api.resources import NODES
    from mews.kube.client.http import HttpKube

    async def create():
        kube = HttpKube.from_kubeconfig(kubeconfig)
        await kube.create(NODES, {"metadata": {"name": "n"}})
        await kube.close()

    asyncio.run(create())


def test_an_unmodified_device_plugin_lags_and_is_frozen(manager):
    manager.label("one")
    manager.becomes("one")
    manager.mews("fault", "add", "--name", "proxy", "lagging-watch", f"by_s={HELD_S}")
    manager.label("two")
    time.sleep(HELD_S - 1.5)
    assert manager.configuration == "one"
    manager.becomes("two")
    manager.mews("fault", "clear", "--name", "proxy")
    manager.mews("fault", "add", "--name", "proxy", "frozen-api")
    manager.label("one")
    time.sleep(HELD_S)
    assert manager.configuration == "two"
    manager.mews("fault", "clear", "--name", "proxy")
    manager.becomes("one")
