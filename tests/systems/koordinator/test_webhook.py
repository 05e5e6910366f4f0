"""The webhooks as an API server calls them: pods are rewritten, foreign bindings refused, and what happens while nobody
answers."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.ports.fence import Fence
from mews.harness.ports.services import LocalServices
from mews.harness.ports.webhooks import InProcessWebhooks
from mews.kube.api.errors import ApiError
from mews.kube.api.resources import NODES, PODS, Resource
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.store.admission import completed
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.kinds.pods.actions import bind
from mews.systems.koordinator import names
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.webhook import KoordWebhook


def asked_by(user: str, *, dry_run: bool = False) -> WriteRequest:
    return WriteRequest(User(user), dry_run=dry_run, answers={})


class WebhookBench:
    """A cluster without kubelets, and webhooks that may run."""

    def __init__(self) -> None:
        self.clock, self.services = virtual_clock(), LocalServices(random.Random(1))
        self.store = fresh_store(self.clock.now, stream(1, "store"))
        self.store.webhooks = InProcessWebhooks(self.services)

    def kube(self, user: str) -> InProcessKube:
        return InProcessKube(self.store, user)

    @asynccontextmanager
    async def running(self, config: KoordinatorConfig | None = None) -> AsyncIterator[None]:
        context = Context(self.kube("system:koord-webhook"), self.clock, random.Random(1), logging.getLogger("x"))
        fence = Fence()
        port = self.services.port("koord-webhook", fence)
        task = asyncio.create_task(KoordWebhook(context, config or KoordinatorConfig(), port).run())
        await asyncio.sleep(1)
        try:
            yield
        finally:
            fence.cut()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def pod(self, name: str, **requests: str) -> dict[str, Any]:
        asked = {key.replace("_", "/", 1).replace("_", "-"): value for key, value in requests.items()}
        spec = {"containers": [{"name": "main", "image": "x", "resources": {"requests": asked}}]}
        return await self.kube("admin").create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="default")


def test_a_pod_with_devices_is_ours_as_soon_as_it_is_stored() -> None:
    async def main() -> None:
        bench = WebhookBench()
        async with bench.running():
            stored = await bench.pod("a", **{"nvidia.com/gpu": "1"})
            assert stored["spec"]["schedulerName"] == names.SCHEDULER
            limits = stored["spec"]["containers"][0]["resources"]["limits"]
            assert limits == {names.CORE: "100", names.RATIO: "100"}
            plain = await bench.pod("b", cpu="1")
            assert plain["spec"]["schedulerName"] == "default-scheduler"

    run_virtual(main)


def test_where_a_device_plugin_runs_nvidia_s_name_stays() -> None:
    async def main() -> None:
        bench = WebhookBench()
        async with bench.running(KoordinatorConfig(device_plugin=True)):
            stored = await bench.pod("a", **{"nvidia.com/gpu": "1"})
            assert stored["spec"]["containers"][0]["resources"]["limits"][names.NVIDIA] == "1"

    run_virtual(main)


def test_a_foreign_binding_is_refused_and_ours_is_not() -> None:
    async def main() -> None:
        bench = WebhookBench()
        await bench.kube("admin").create(NODES, {"metadata": {"name": "n"}})
        async with bench.running():
            await bench.pod("a", **{"koordinator.sh/gpu": "50"})
            await bench.pod("b", cpu="1")
            with pytest.raises(ApiError, match="only system:serviceaccount:koordinator-system:koord-scheduler may"):
                await bench.kube("system:default-scheduler").bind("default", "a", "n")
            await bench.kube("system:default-scheduler").bind("default", "b", "n")
            await bench.kube("system:koord-scheduler").bind("default", "a", "n")

    run_virtual(main)


def test_a_dry_run_shows_what_would_be_and_changes_nothing() -> None:
    async def main() -> None:
        bench = WebhookBench()
        dry = asked_by("admin", dry_run=True)
        async with bench.running():
            stored = await bench.pod("a", **{"nvidia.com/gpu": "1"})
            body = {"metadata": {"name": "b"}, "spec": {"containers": stored["spec"]["containers"]}}
            kind = bench.store.kinds.of(PODS)
            shown = await completed(lambda request: create(bench.store, kind, "default", body, request), dry)
            assert shown["spec"]["schedulerName"] == names.SCHEDULER
            binding = {"metadata": {"name": "a"}, "target": {"name": "n"}}
            with pytest.raises(ApiError, match="only system:serviceaccount:koordinator-system:koord-scheduler may"):
                await completed(lambda request: bind(bench.store, "default", "a", binding, request), dry)
            ours = asked_by("system:koord-scheduler", dry_run=True)
            await completed(lambda request: bind(bench.store, "default", "a", binding, request), ours)
            (pod,) = (await bench.kube("admin").list(PODS)).items
            assert "nodeName" not in pod["spec"]

    run_virtual(main)


def test_a_foreign_binding_by_the_older_path_is_refused_as_well() -> None:
    async def main() -> None:
        bench = WebhookBench()
        await bench.kube("admin").create(NODES, {"metadata": {"name": "n"}})
        kind = bench.store.kinds.of(Resource("", "v1", "bindings", "Binding"))
        async with bench.running():
            await bench.pod("a", **{"koordinator.sh/gpu": "50"})
            await bench.pod("b", cpu="1")

            async def post(name: str, user: str) -> None:
                binding = {"metadata": {"name": name}, "target": {"name": "n"}}
                await completed(
                    lambda request: bind(bench.store, "default", name, binding, request, posted_to=kind),
                    asked_by(user),
                )

            with pytest.raises(ApiError, match="only system:serviceaccount:koordinator-system:koord-scheduler may"):
                await post("a", "system:default-scheduler")
            await post("b", "system:default-scheduler")
            await post("a", "system:koord-scheduler")

    run_virtual(main)


def test_a_contradictory_request_is_refused_in_one_line() -> None:
    async def main() -> None:
        bench = WebhookBench()
        async with bench.running():
            with pytest.raises(
                ApiError, match=r"container main: kubernetes\.io/gpu-core: 60: it is requested as 50 as well"
            ):
                await bench.pod("a", **{"koordinator.sh/gpu-core": "50", "kubernetes.io/gpu-core": "60"})

    run_virtual(main)


async def refused(bench: WebhookBench, name: str, **requests: str) -> str:
    with pytest.raises(ApiError) as found:
        await bench.pod(name, **requests)
    assert found.value.code == 400
    return str(found.value)


def test_a_pod_that_upstreams_webhook_refuses_is_refused_in_its_words_as_it_is_created_and_as_it_is_changed() -> None:
    where = "pod.spec.containers[*].resources.requests"
    denied = 'admission webhook "validate-pod.koordinator.sh" denied the request: '

    async def main() -> None:
        bench = WebhookBench()
        reserve = {"metadata": {"annotations": {names.RESERVE_POD: "true"}}}
        async with bench.running():
            odd = {names.CORE: "2000", names.RATIO: "300", names.SHARED: "3"}
            text = await refused(bench, "a", **odd)
            assert text == f'{denied}{where}: Invalid value: "2k": the requested gpuCore must multiple of shared'
            text = await refused(bench, "b", **{names.SHARED: "2"})
            assert text == f"{denied}{where}: Forbidden: GPU memory and GPU memory ratio all is zero"
            await bench.pod("c", cpu="1")
            with pytest.raises(ApiError) as found:
                await bench.kube("admin").patch(PODS, "c", reserve, namespace="default")
            assert str(found.value) == (
                f"{denied}annotations.{names.RESERVE_POD}: Forbidden: cannot set in annotations"
            )
        await bench.kube("admin").patch(PODS, "c", reserve, namespace="default")  # nobody answers

    run_virtual(main)


def test_an_elastic_quota_s_label_for_preemption_stays_as_it_is() -> None:
    async def main() -> None:
        bench = WebhookBench()
        async with bench.running():
            await bench.pod("a", cpu="1")
            labels = {"metadata": {"labels": {names.PREEMPTIBLE: "true"}}}
            with pytest.raises(ApiError, match=r"Preemptible label is forbidden modify now\."):
                await bench.kube("admin").patch(PODS, "a", labels, namespace="default")
            await bench.kube("admin").patch(PODS, "a", {"metadata": {"labels": {"a": "b"}}}, namespace="default")

    run_virtual(main)


def test_while_nobody_answers_pods_are_created_and_nothing_is_bound() -> None:
    async def main() -> None:
        bench = WebhookBench()
        await bench.kube("admin").create(NODES, {"metadata": {"name": "n"}})
        async with bench.running():
            await bench.pod("a", **{"koordinator.sh/gpu": "50"})
        plain = await bench.pod("b", cpu="1")
        assert plain["spec"]["schedulerName"] == "default-scheduler"
        with pytest.raises(ApiError, match="connection refused"):
            await bench.kube("system:default-scheduler").bind("default", "a", "n")
        async with bench.running():
            await bench.kube("system:koord-scheduler").bind("default", "a", "n")

    run_virtual(main)
