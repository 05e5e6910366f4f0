"""The official Python client, and tokens, against the embedded API server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mews.kube.api.errors import ForbiddenError, UnauthorizedError
from mews.kube.api.resources import CRDS, NAMESPACES, PODS
from mews.kube.client.http import HttpKube
from tests.contract.test_kube_api import DEFINITION
from tests.kube.emulated.apiserver.serving import Served, serve

pytestmark = pytest.mark.wall


def with_client(folder: Path, use: Callable[[Any, Served], None]) -> None:
    """Run a blocking check with the official client in a thread."""

    async def check(served: Served) -> None:
        await served.kube.create(CRDS, DEFINITION)

        def blocking() -> None:
            from kubernetes import config

            client = config.new_client_from_config(str(folder / "kubeconfig"))
            try:
                use(client, served)
            finally:
                client.close()
                client.rest_client.pool_manager.clear()  # close leaves its connections to the garbage collector

        await asyncio.to_thread(blocking)

    serve(folder, check)
    gc.collect()


def test_the_official_client_creates_lists_patches_watches_and_deletes(tmp_path: Path) -> None:
    def use(client: Any, served: Served) -> None:
        from kubernetes import client as kubernetes
        from kubernetes import watch

        core = kubernetes.CoreV1Api(client)
        container = kubernetes.V1Container(name="c", image="busybox:1")
        body = kubernetes.V1Pod(
            metadata=kubernetes.V1ObjectMeta(name="a"), spec=kubernetes.V1PodSpec(containers=[container])
        )
        made = core.create_namespaced_pod("default", body)
        assert made.spec.scheduler_name == "default-scheduler"
        core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"x": "1"}}})
        assert [pod.metadata.name for pod in core.list_namespaced_pod("default", label_selector="x=1").items] == ["a"]
        core.delete_namespaced_pod("a", "default")
        stream = watch.Watch().stream(
            core.list_namespaced_pod, "default", resource_version=made.metadata.resource_version, timeout_seconds=1
        )
        assert [event["type"] for event in stream] == ["MODIFIED", "MODIFIED", "DELETED"]
        with pytest.raises(kubernetes.exceptions.ApiException) as caught:
            core.read_namespaced_pod("a", "default")
        assert caught.value.status == 404

    with_client(tmp_path, use)


def test_the_official_client_reads_logs_and_runs_commands(tmp_path: Path) -> None:
    def use(client: Any, served: Served) -> None:
        from kubernetes import client as kubernetes
        from kubernetes.stream import stream

        core = kubernetes.CoreV1Api(client)
        spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i:1"}]}
        core.create_namespaced_pod("default", {"metadata": {"name": "a"}, "spec": spec})
        assert core.read_namespaced_pod_log("a", "default") == "a/c one\ntwo\n"
        running = stream(
            core.connect_get_namespaced_pod_exec,
            "a",
            "default",
            command=["echo", "hi"],
            stdout=True,
            stderr=True,
            _preload_content=False,
        )
        running.run_forever(timeout=60)
        assert running.read_stdout() == "hi\n"
        assert running.returncode == 0
        running.close()
        running.sock.shutdown()  # close leaves it open where the server was the first to close

    with_client(tmp_path, use)


def test_the_official_client_handles_custom_objects(tmp_path: Path) -> None:
    def use(client: Any, served: Served) -> None:
        from kubernetes import client as kubernetes

        custom = kubernetes.CustomObjectsApi(client)
        place = ("mews.test", "v1", "default", "tfjobs")
        body = {"apiVersion": "mews.test/v1", "kind": "TFJob", "metadata": {"name": "j"}, "spec": {"replicas": 1}}
        custom.create_namespaced_custom_object(*place, body)
        patched = custom.patch_namespaced_custom_object(*place, "j", {"spec": {"replicas": 2}})
        assert patched["spec"] == {"replicas": 2, "policy": "a"}
        assert len(custom.list_namespaced_custom_object(*place)["items"]) == 1
        custom.delete_namespaced_custom_object(*place, "j")
        assert custom.list_namespaced_custom_object(*place)["items"] == []

    with_client(tmp_path, use)


def test_our_client_reads_the_same_kubeconfig(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        kube = await asyncio.to_thread(HttpKube.from_kubeconfig, str(tmp_path / "kubeconfig"), "mews")
        try:
            assert (await kube.get(NAMESPACES, "default"))["status"] == {"phase": "Active"}
        finally:
            await kube.close()

    serve(tmp_path, check, tokens={"secret": "me"})


def test_tokens_tell_users_from_strangers(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        assert (await served.kube.list(PODS)).items == []
        stranger, liar = HttpKube(served.server.url), HttpKube(served.server.url, token="wrong")
        try:
            with pytest.raises(ForbiddenError) as caught:
                await stranger.get(PODS, "x", namespace="n")
            assert caught.value.message == (
                'pods "x" is forbidden: User "system:anonymous" cannot get resource "pods" in API group "" in the '
                'namespace "n"'
            )
            with pytest.raises(UnauthorizedError):
                await liar.list(PODS)
        finally:
            await stranger.close()
            await liar.close()

    serve(tmp_path, check, tokens={"secret": "me"})


def test_our_client_runs_commands_over_a_websocket(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i:1"}]}
        await served.kube.create(PODS, {"metadata": {"name": "a"}, "spec": spec}, namespace="default")
        done = await served.kube.exec("default", "a", ["echo", "x", "y"])
        assert (done.exit_code, done.stdout) == (0, b"x y\n")
        failed = await served.kube.exec("default", "a", ["fail"])
        assert (failed.exit_code, failed.stderr) == (3, b"no\n")
        lines = b"".join([chunk async for chunk in served.kube.log("default", "a", follow=True)])
        assert lines == b"a/c one\ntwo\nthree\n"

    serve(tmp_path, check)
