"""Published Python clients, unmodified: each creates, lists, watches, patches and deletes over http and over TLS."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.test_kube_api import DEFINITION
from tests.kube.emulated.apiserver.faces import DEADLINE_S, Face, face

pytestmark = [
    pytest.mark.wall,
    # What these clients leave open is theirs.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

RUNNING = {
    "phase": "Running",
    "conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")],
}


@pytest.fixture(scope="module", params=["http", "tls"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Face]:
    with face(tmp_path_factory.mktemp("face"), tls=request.param == "tls") as opened:
        yield opened
    gc.collect()  # clients leave connections to the garbage collector; now, not within another test


def pod(name: str) -> dict[str, Any]:
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def test_the_official_client_works_by_its_models_and_dynamically(served: Face) -> None:
    from kubernetes import client, config, dynamic, watch

    api = config.new_client_from_config(str(served.kubeconfig))
    core = client.CoreV1Api(api)
    made = core.create_namespaced_config_map("default", {"metadata": {"name": "models"}, "data": {"a": "1"}})
    core.patch_namespaced_config_map("models", "default", {"data": {"b": "2"}})
    assert core.read_namespaced_config_map("models", "default").data == {"a": "1", "b": "2"}
    core.delete_namespaced_config_map("models", "default")
    version = made.metadata.resource_version
    watching, seen = watch.Watch(), []
    for event in watching.stream(core.list_namespaced_config_map, "default", resource_version=version):
        seen.append(event["type"])
        if event["type"] == "DELETED":
            watching.stop()
    assert seen == ["MODIFIED", "DELETED"]
    maps = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dynamic"}, "data": {"q": "r"}}
    assert maps.server_side_apply(name="dynamic", namespace="default", body=body, field_manager="m").data.q == "r"
    assert "dynamic" in [item.metadata.name for item in maps.get(namespace="default").items]
    maps.delete(name="dynamic", namespace="default")
    with pytest.raises(client.exceptions.ApiException) as caught:
        core.read_namespaced_config_map("dynamic", "default")
    assert (caught.value.status, caught.value.reason) == (404, "Not Found")
    api.close()
    api.rest_client.pool_manager.clear()


def test_kubernetes_asyncio_works_by_its_models_and_dynamically(served: Face) -> None:
    from kubernetes_asyncio import client, config, watch
    from kubernetes_asyncio.dynamic import DynamicClient

    async def main() -> None:
        configuration = client.Configuration()
        await config.load_kube_config(config_file=str(served.kubeconfig), client_configuration=configuration)
        async with client.ApiClient(configuration) as api:
            core = client.CoreV1Api(api)
            meta = client.V1ObjectMeta(name="asyncio")
            made = await core.create_namespaced_config_map(
                "default", client.V1ConfigMap(metadata=meta, data={"a": "1"})
            )
            await core.patch_namespaced_config_map("asyncio", "default", {"data": {"b": "2"}})
            named = [item.metadata.name for item in (await core.list_namespaced_config_map("default")).items]
            assert "asyncio" in named
            await core.delete_namespaced_config_map("asyncio", "default")
            seen = []
            version = made.metadata.resource_version
            watching = watch.Watch()
            async with watching.stream(core.list_namespaced_config_map, "default", resource_version=version) as stream:
                async for event in stream:
                    seen.append((event["type"], event["object"].metadata.name))
                    if len(seen) == 2:
                        watching.stop()
            assert seen == [("MODIFIED", "asyncio"), ("DELETED", "asyncio")]
        async with client.ApiClient(configuration) as api:
            dynamic = await DynamicClient(api)
            pods = await dynamic.resources.get(api_version="v1", kind="Pod")
            await pods.create(body=pod("asyncio"), namespace="default")
            assert (await pods.get(name="asyncio", namespace="default")).spec.nodeName == "n1"
            await pods.delete(name="asyncio", namespace="default", body={"gracePeriodSeconds": 0})

    asyncio.run(asyncio.wait_for(main(), DEADLINE_S))


def test_kr8s_works_by_its_objects_and_reads_logs_and_runs_commands(served: Face) -> None:
    import kr8s
    from kr8s.asyncio.objects import ConfigMap, Pod

    async def main() -> None:
        api = await kr8s.asyncio.api(kubeconfig=str(served.kubeconfig))
        assert (await api.version())["gitVersion"].startswith("v1.34")
        made = await ConfigMap({"metadata": {"name": "kr8s", "namespace": "default"}, "data": {"a": "1"}}, api=api)
        await made.create()
        await made.label({"x": "y"})
        await made.patch({"data": {"b": "2"}})
        assert [each.raw.data async for each in api.get("configmaps", label_selector="x=y")] == [{"a": "1", "b": "2"}]
        async for kind, seen in api.watch("configmaps", namespace="default", label_selector="x=y"):
            assert (kind, seen.name) == ("ADDED", "kr8s")
            break
        await made.delete()
        assert not await made.exists()
        one = await Pod(pod("kr8s"), api=api)
        await one.create()
        await one.patch({"status": RUNNING}, subresource="status")
        assert [line async for line in one.logs()] == ["kr8s/c one", "two"]
        done = await one.exec(["echo", "hi"])
        assert (done.returncode, done.stdout) == (0, b"hi\n")
        await one.delete(force=True)
        await one.wait("delete", timeout=int(DEADLINE_S))
        assert api._session is not None
        await api._session.aclose()  # nothing public closes it

    asyncio.run(asyncio.wait_for(main(), DEADLINE_S))


def test_lightkube_works_by_its_models_and_generically(served: Face) -> None:
    import lightkube
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.models.core_v1 import Container, PodSpec
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
    from lightkube.resources.core_v1 import ConfigMap, Pod

    config = lightkube.KubeConfig.from_file(str(served.kubeconfig))
    client = lightkube.Client(config=config, namespace="default", field_manager="lightkube")
    made = client.create(ConfigMap(metadata=ObjectMeta(name="lightkube"), data={"a": "1"}))
    client.patch(ConfigMap, "lightkube", {"data": {"b": "2"}})
    applied = client.apply(ConfigMap(metadata=ObjectMeta(name="applied"), data={"z": "1"}))
    assert applied.metadata.managedFields[0].manager == "lightkube"
    assert {"lightkube", "applied"} <= {each.metadata.name for each in client.list(ConfigMap)}
    events = client.watch(ConfigMap, resource_version=made.metadata.resourceVersion)
    assert [(kind, obj.metadata.name) for kind, obj in (next(events), next(events))] == [
        ("MODIFIED", "lightkube"),
        ("ADDED", "applied"),
    ]
    events.close()
    one = Pod(
        metadata=ObjectMeta(name="lk"), spec=PodSpec(containers=[Container(name="c", image="i:1")], nodeName="n1")
    )
    client.create(one)
    assert list(client.log("lk")) == ["lk/c one\n", "two\n"]
    assert client.patch(Pod.Status, "lk", {"status": RUNNING}).status.phase == "Running"
    client.wait(Pod, "lk", for_conditions=["Ready"])
    client.delete(Pod, "lk", grace_period=0)
    client.delete(ConfigMap, "lightkube")
    with pytest.raises(lightkube.ApiError) as caught:
        client.get(ConfigMap, "lightkube")
    assert (caught.value.status.reason, caught.value.status.code) == ("NotFound", 404)
    client.create(CustomResourceDefinition.from_dict(DEFINITION))
    jobs = create_namespaced_resource("mews.test", "v1", "TFJob", "tfjobs")
    job = client.create(jobs(metadata=ObjectMeta(name="j"), spec={"replicas": 1}))
    assert job.spec == {"replicas": 1, "policy": "a"}
    client.deletecollection(jobs)
    assert list(client.list(jobs)) == []
    client.delete(CustomResourceDefinition, "tfjobs.mews.test")
    client._client._client.close()  # nothing public closes it
