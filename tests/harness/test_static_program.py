"""A static program of Go as a pod, without Docker and without more rights than its user has: volumes, probes, the name
of a Service, a port of its own, its GPUs, and changes of a ConfigMap that arrive."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from mews.harness.errors import RequirementError
from mews.harness.options import check_available
from mews.kube.emulated.kubelet.mount_namespace import filters_lacking
from tests.emulator.nvml.gobuild import built
from tests.harness.as_nobody import NOBODY, as_nobody, lacking, run
from tests.upstream.up import cluster

pytestmark = pytest.mark.wall
SOURCE = Path(__file__).parent / "podprogram"
ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"color": "red"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret"}, "stringData": {"word": "open"}}


def pod(name: str, gpus: int) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1}
    container = {
        "name": "main", "image": "case/static", "command": ["/server"], "args": ["--as", name],
        "env": [{"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "color"}}}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": probe,
        "livenessProbe": {"exec": {"command": ["/server", "healthy", "please"]}, "periodSeconds": 1},
        "resources": {"limits": {"falcon.com/gpu": str(gpus)}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app"}, {"name": "secret", "mountPath": "/secret", "readOnly": True},
            {"name": "about", "mountPath": "/about"}, {"name": "scratch", "mountPath": "/scratch"},
            {"name": "fast", "mountPath": "/fast"},
        ],
    }  # fmt: skip
    labels = {"fieldRef": {"fieldPath": "metadata.labels"}, "path": "labels"}
    volumes = [
        {"name": "config", "configMap": {"name": "config"}}, {"name": "secret", "secret": {"secretName": "secret"}},
        {"name": "about", "downwardAPI": {"items": [labels]}}, {"name": "scratch", "emptyDir": {}},
        {"name": "fast", "emptyDir": {"medium": "Memory"}},
    ]  # fmt: skip
    metadata = {"name": name, "labels": {"app": name}}
    spec = {"containers": [container], "volumes": volumes, "securityContext": {"runAsUser": 65532}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def service(name: str) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": "http"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


class Client:
    """Whoever has the kubeconfig."""

    def __init__(self, kubeconfig: str) -> None:
        self._words = ("kubectl", "--kubeconfig", kubeconfig)

    def run(self, *words: str, stdin: str | None = None) -> str:
        done = subprocess.run([*self._words, *words], input=stdin, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def refused(self, *words: str, stdin: str | None = None) -> str:
        """What it says against it."""
        done = subprocess.run([*self._words, *words], input=stdin, capture_output=True, text=True, timeout=120)
        assert done.returncode != 0, (words, done.stdout)
        return done.stderr

    def apply(self, *objects: dict[str, Any]) -> None:
        self.run("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def seen(self, pod: str, **query: Any) -> Any:
        path = f"/api/v1/namespaces/default/pods/{pod}:8080/proxy/?{urlencode(query, doseq=True)}"
        return json.loads(self.run("get", "--raw", path))


def await_true(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def test_a_user_without_rights_gets_the_same(tmp_path: Path) -> None:
    """Mews as nobody: the same program, as a pod with its volumes, processes and network."""
    if lacking():
        pytest.skip(lacking())
    program = built(SOURCE, cgo=False)
    with tempfile.TemporaryDirectory(prefix="n", dir="/tmp") as folder:
        home, stage = Path(folder) / "home", Path(folder) / "stage"
        home.mkdir()
        stage.mkdir()
        Path(folder).chmod(0o755)
        server = shutil.copy(program, folder)
        images = Path(folder) / "images.yaml"
        images.write_text(yaml.safe_dump({"images": {"case/static": {"process": [str(server)]}}}))
        sees = [Path(sys.base_prefix), Path(sys.prefix), ROOT]

        def as_user(argv: list[str], own: Path) -> list[str]:
            own.chmod(0o777)
            environment = ["env", f"HOME={home}", f"XDG_CACHE_HOME={home}", f"TMPDIR={own}"]
            return as_nobody([*environment, *argv], home=home, sees=sees, stage=stage)

        asked = as_user([sys.executable, "-c", PROBE], home)
        said = run(asked).strip()
        if said:
            pytest.skip(f"no namespaces for users without rights: {said}")
        with cluster(["--stack", "none", "--images", str(images)], started=as_user) as ready:
            client = Client(ready["kubeconfig"])
            client.apply(CONFIG, SECRET, pod("one", 0), pod("two", 0), service("one"), service("two"), *PAIRS)
            pods = ("pod/one", "pod/two", "pod/pair", "pod/sharing")
            client.run("wait", "--for=condition=Ready", *pods, "--timeout", "60s")
            check_files(client)
            check_network(client)
            numbers = client.seen("one", file="/proc/1/cmdline")["files"]["/proc/1/cmdline"]
            assert numbers.startswith("/server"), numbers
            for name, first in (("pair", "sh"), ("sharing", "pause")):
                said = client.run("exec", name, "-c", "beside", "--", "sh", "-c", "id -u; cat /proc/1/comm")
                assert said.split() == ["1234", first]
            assert Path(f"/proc/{ready['pid']}").stat().st_uid == NOBODY


_WAITS = ["sh", "-c", "trap exit TERM; while :; do sleep 1; done"]
_BESIDE = {"name": "beside", "image": "busybox", "command": _WAITS, "securityContext": {"runAsUser": 1234}}
_BOTH = [{"name": "main", "image": "busybox", "command": _WAITS}, _BESIDE]
PAIRS = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": _BOTH, **more}}
    for name, more in (("pair", {}), ("sharing", {"shareProcessNamespace": True}))
]
PROBE = "from mews.kube.emulated.kubelet.mount_namespace import filters_lacking; print(filters_lacking())"


@pytest.mark.parametrize("where", ["embedded", "control-plane"])
def test_a_static_program_is_a_pod_of_its_own(where: str, tmp_path: Path) -> None:
    try:
        check_available(where)
    except RequirementError as error:
        pytest.skip(str(error))
    if filters_lacking():
        pytest.skip(f"no network of pods: {filters_lacking()}")
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    images = tmp_path / "images.yaml"
    images.write_text(yaml.safe_dump({"images": {"case/static": {"process": [str(built(SOURCE, cgo=False))]}}}))
    with cluster(["--cluster", where, "--images", str(images), "--speed", "20"]) as ready:
        client = Client(ready["kubeconfig"])
        client.apply(CONFIG, SECRET, pod("one", 2), pod("two", 1), service("one"), service("two"))
        client.run("wait", "--for=condition=Ready", "pod/one", "pod/two", "--timeout", "60s")
        check_files(client)
        check_network(client)
        check_gpus(client)
        client.apply({**CONFIG, "data": {"color": "blue"}})
        changed = lambda: client.seen("one", file="/etc/app/color")["files"]["/etc/app/color"] == "blue"  # noqa: E731
        await_true(changed, "the ConfigMap's change did not arrive")
        assert client.seen("one")["color"] == "red", "a variable stays as it was"
        restarts = "jsonpath={.status.containerStatuses[0].restartCount}"
        assert client.run("get", "pod", "one", "-o", restarts) == "0", "its probes went well"


def check_files(client: Client) -> None:
    asked = ["/etc/app/color", "/secret/word", "/about/labels", "/etc/hostname-is-none"]
    found = client.seen("one", file=asked, write="/scratch/x")
    assert found["files"]["/etc/app/color"] == "red"
    assert found["files"]["/secret/word"] == "open"
    assert found["files"]["/about/labels"] == 'app="one"'
    assert found["files"]["/etc/hostname-is-none"].startswith("error: ")
    assert (found["hostname"], found["arguments"], found["write"]) == ("one", ["--as", "one"], True)
    mounts = client.seen("one", file="/proc/self/mountinfo", write="/fast/x")["files"]["/proc/self/mountinfo"]
    found = [line.rpartition(" - ")[2].split()[0] for line in mounts.splitlines() if line.split()[4] == "/fast"]
    assert found == ["tmpfs"]
    assert client.seen("one", file="/fast/x")["files"]["/fast/x"] == "written"
    assert client.seen("two", file="/scratch/x")["files"]["/scratch/x"].startswith("error: ")
    for place in ("/usr/x", "/secret/x", "/x"):
        assert client.seen("one", write=place)["write"] is False, place


def check_network(client: Client) -> None:
    """Two pods at one port, each by its Service's name and address."""
    for asking, asked in (("one", "two"), ("two", "one")):
        found = client.seen(asking, name=f"{asked}.default.svc", ask=f"http://{asked}.default.svc/?file=/etc/hostname")
        address = client.run("get", "service", asked, "-o", "jsonpath={.spec.clusterIP}")
        assert found["addresses"] == [address]
        answer = json.loads(found["answer"])
        assert answer["hostname"] == asked
        own = client.run("get", "pod", asking, "-o", "jsonpath={.status.podIP}")
        assert answer["remote"].rpartition(":")[0] == own

    node = client.run("get", "nodes", "-o", "jsonpath={.items[0].status.addresses[0].address}")
    answer = client.seen("one", ask=f"https://{node}:10250/healthz")["answer"]
    assert answer.endswith("certificate signed by unknown authority"), "a kubelet is reached, and not trusted by all"


def check_gpus(client: Client) -> None:
    found = {name: client.seen(name, gpus="1")["gpus"] for name in ("one", "two")}
    assert [len(found[name]) for name in ("one", "two")] == [2, 1], found
    shown = [line for lines in found.values() for line in lines]
    assert len({line.partition("UUID")[2] for line in shown}) == 3, found
    assert all(line.startswith("GPU ") for line in shown)
