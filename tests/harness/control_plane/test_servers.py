"""The real servers: emptied between scenarios, reached over TLS with a token, asked for logs and commands."""

import asyncio
import base64
import json
import os
import shutil
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from mews.harness.clusters import open_cluster
from mews.harness.clusters.control_plane.backend import servers_of
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.commands.up import scenario_of
from mews.harness.errors import RequirementError
from mews.harness.options import RunOptions
from mews.kube.api.objects import labels_of, name_of
from mews.kube.api.resources import CONFIGMAPS, NAMESPACES, NODES, PODS
from mews.kube.client.http import HttpKube
from mews.kube.client.port import Patch

pytestmark = pytest.mark.wall

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "holder"},
    "spec": {
        "schedulerName": "kubecomp-scheduler",
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {"falcon.com/gpu": "2"}}},
        ],
    },
}


@pytest.fixture
def servers(shared):
    servers = servers_of(shared)
    servers.ready()
    return servers


def client(servers):
    return HttpKube(servers.url, token=servers.identity.token, ssl=servers.identity.client_context())


def test_emptied_servers_hold_what_they_held_at_the_start_and_watches_hear_of_it(servers):
    async def main():
        kube = client(servers)
        try:
            before = await labelled(kube)
            await kube.create(NAMESPACES, {"metadata": {"name": "n", "finalizers": ["a/b"]}})
            made = await kube.create(CONFIGMAPS, {"metadata": {"name": "c"}}, namespace="n")
            await kube.patch(NAMESPACES, "default", {"metadata": {"labels": {"mine": "yes"}}}, kind=Patch.MERGE)
            assert await labelled(kube) != before
            await asyncio.to_thread(servers.ready)
            version = made["metadata"]["resourceVersion"]
            async with asyncio.timeout(60):
                async for event in kube.watch(CONFIGMAPS, namespace="n", resource_version=version):
                    assert (event.type.value, name_of(event.object)) == ("DELETED", "c")
                    break
            assert await labelled(kube) == before
            assert [obj for resource in (NODES, PODS) for obj in (await kube.list(resource)).items] == []
        finally:
            await kube.close()

    asyncio.run(main())


async def labelled(kube):
    return {name_of(obj): labels_of(obj) for obj in (await kube.list(NAMESPACES)).items}


def test_nobody_gets_in_without_the_token(servers):
    request = urllib.request.Request(f"{servers.url}/api/v1/pods")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=servers.identity.client_context(), timeout=30)
    assert refused.value.code in (401, 403)
    refused.value.close()
    assert servers.identity.tokens.stat().st_mode & 0o077 == 0
    assert servers.identity.key.stat().st_mode & 0o077 == 0


def test_nobody_gets_past_the_api_server(servers):
    ask = {"key": base64.b64encode(b"/registry").decode(), "range_end": base64.b64encode(b"/registry0").decode()}
    request = urllib.request.Request(f"{servers._etcd._url}/v3/kv/range", json.dumps(ask).encode(), method="POST")
    with pytest.raises(OSError):  # which kind depends on whose goodbye comes first
        urllib.request.urlopen(request, context=servers.identity.client_context(), timeout=30).close()
    with urllib.request.urlopen(request, context=servers.identity.holder_context(), timeout=30) as answer:
        assert json.load(answer)["kvs"]


def test_servers_that_died_are_started_anew(servers):
    servers._processes[-1].kill()
    servers._processes[-1].wait()
    servers.ready()

    async def main():
        kube = client(servers)
        try:
            assert (await kube.list(NODES)).items == []
        finally:
            await kube.close()

    asyncio.run(main())


def test_servers_that_are_stopped_while_they_start_leave_nothing(programs):
    servers, refused = Servers(), []

    def start():
        try:
            servers.ready()
        except RequirementError as error:
            refused.append(str(error))

    starting = threading.Thread(target=start)
    starting.start()
    while not (servers.folder / "kube-apiserver.log").exists():
        starting.join(0.01)
    begun = list(servers._processes)
    servers.stop()
    starting.join(10)
    assert refused == ["the control plane was stopped before it was ready"]
    assert begun
    assert all(process.poll() is not None for process in begun)
    assert servers._processes == []
    assert not servers.folder.exists()


async def kubectl(kubeconfig, *arguments, stdin=None):
    process = await asyncio.create_subprocess_exec(
        find_kubectl(), f"--kubeconfig={kubeconfig}", *arguments,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate(None if stdin is None else stdin.encode())
    return process.returncode, out.decode(), err.decode()


def find_kubectl():
    found = shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", "")) or shutil.which("kubectl")
    if found is None:
        pytest.skip("kubectl is neither in KUBEBUILDER_ASSETS nor on PATH")
    return found


def test_kubectl_sees_logs_and_runs_commands_through_the_real_api_server(shared, tmp_path):
    find_kubectl()

    async def main():
        cluster = await open_cluster(
            scenario_of(None, None),
            RunOptions("control-plane", "wall", speed=10, folder=tmp_path),
            session=shared,
        )
        try:
            await play(cluster.ready()["kubeconfig"])
        finally:
            await cluster.close()

    async def play(kubeconfig):
        assert (await kubectl(kubeconfig, "apply", "-f", "-", stdin=json.dumps(POD)))[0] == 0
        code, _, error = await kubectl(kubeconfig, "wait", "--for=condition=Ready", "pod/holder", "--timeout=40s")
        assert code == 0, error
        code, log, error = await kubectl(kubeconfig, "logs", "holder")
        assert (code, log.count("GPU-"), error) == (0, 2, "")
        code, tail, _ = await kubectl(kubeconfig, "logs", "holder", "--tail=1")
        assert tail == log.splitlines(keepends=True)[-1]
        script = 'echo "$NVIDIA_VISIBLE_DEVICES"; echo told >&2; exit 3'
        code, out, error = await kubectl(kubeconfig, "exec", "holder", "--", "sh", "-c", script)
        assert (code, sorted(out.strip().split(","))) == (3, sorted(log.split()))
        assert "told" in error
        assert (await kubectl(kubeconfig, "exec", "holder", "--", "true"))[0] == 0
        code, _, error = await kubectl(kubeconfig, "logs", "holder", "-c", "other")
        assert code == 1
        assert "other" in error

    asyncio.run(main())


def test_a_kubelets_server_answers_nobody_but_the_api_server(shared, tmp_path):
    async def main():
        cluster = await open_cluster(
            scenario_of(None, None),
            RunOptions("control-plane", "wall", speed=10, folder=tmp_path),
            session=shared,
        )
        try:
            place = cluster.ready()["nodes"]["host-1"]["kubelet"]
            context = servers_of(shared).identity.client_context()
            with pytest.raises(OSError):
                await asyncio.to_thread(ask, f"{place}/healthz", context)
        finally:
            await cluster.close()

    def ask(url, context):
        with urllib.request.urlopen(url, context=context, timeout=30) as answer:
            answer.read()

    asyncio.run(main())
