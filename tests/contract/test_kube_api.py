"""One suite for the KubeApi port over all its backends (contract apiserver.md sections 2 to 7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from mews.kube.api.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from mews.kube.api.objects import Object, condition_of, name_of, version_of
from mews.kube.api.resources import (
    CONFIGMAPS,
    CRDS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NEW_EVENTS,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    Resource,
)
from mews.kube.client.port import DeleteOptions, EventType, KubeApi, Patch, Preconditions, WatchEvent
from tests.contract.kube_backends import Backend, ControlPlane, InProcess, OverHttp, Real, control_plane_binaries

NS = "suite"
WALL = pytest.mark.wall
TFJOBS = Resource("mews.test", "v1", "tfjobs", "TFJob")


@pytest.fixture(scope="module")
def control_plane() -> Iterator[Real]:
    binaries = control_plane_binaries()
    if binaries is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    plane = ControlPlane(binaries)
    try:
        plane.start()
        yield Real(plane.base_url, plane.token)
    finally:
        plane.stop()


@pytest.fixture(params=["in-process", pytest.param("http", marks=WALL), pytest.param("control-plane", marks=WALL)])
def backend(request: pytest.FixtureRequest) -> Backend:
    match request.param:
        case "in-process":
            return InProcess()
        case "http":
            return OverHttp()
    real: Real = request.getfixturevalue("control_plane")
    return real


def configmap(name: str, **data: str) -> Object:
    return {"metadata": {"name": name}, "data": data}


def pod(name: str, **spec: Any) -> Object:
    container = {"name": "c", "image": "busybox:1"}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def gpu_pod(name: str, amount: Any, key: str = "limits") -> Object:
    container = {"name": "c", "image": "busybox:1", "resources": {key: {"falcon.com/gpu": amount}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


async def take(stream: AsyncIterator[WatchEvent], count: int) -> list[tuple[str, str]]:
    """The next events as (type, name)."""
    found = []
    while len(found) < count:
        event = await asyncio.wait_for(anext(stream), 60)
        if event.type is not EventType.BOOKMARK:
            found.append((event.type.value, name_of(event.object)))
    return found


def test_a_created_object_comes_back_with_what_the_server_adds(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        made = await kube.create(CONFIGMAPS, configmap("a", x="1"), namespace=NS)
        got = await kube.get(CONFIGMAPS, "a", namespace=NS)
        assert got == made
        assert got["kind"] == "ConfigMap" and got["apiVersion"] == "v1"
        assert got["metadata"]["uid"] and got["metadata"]["creationTimestamp"] and version_of(got) > 0
        assert "generation" not in got["metadata"]

    backend.run(check)


def test_a_second_object_of_a_name_is_refused(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        await kube.create(CONFIGMAPS, configmap("a"), namespace=NS)
        with pytest.raises(AlreadyExistsError) as caught:
            await kube.create(CONFIGMAPS, configmap("a"), namespace=NS)
        assert caught.value.message == 'configmaps "a" already exists'
        assert caught.value.details == {"name": "a", "kind": "configmaps"}

    backend.run(check)


def test_a_missing_object_is_not_found_by_its_plural(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        for act in (kube.get, kube.delete):
            with pytest.raises(NotFoundError) as caught:
                await act(PODS, "nobody", namespace=NS)
            assert caught.value.message == 'pods "nobody" not found'
        with pytest.raises(NotFoundError):
            await kube.patch(PODS, "nobody", {}, namespace=NS)

    backend.run(check)


def test_a_name_that_is_none_is_invalid(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        with pytest.raises(InvalidError) as caught:
            await kube.create(CONFIGMAPS, configmap("Not_a_name"), namespace=NS)
        assert caught.value.message.startswith(
            'ConfigMap "Not_a_name" is invalid: metadata.name: Invalid value: "Not_a_name": a lowercase RFC 1123'
        )
        assert caught.value.details["kind"] == "ConfigMap"

    backend.run(check)


def test_generate_name_appends_five_characters(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        body = {"metadata": {"generateName": "job-"}}
        names = [name_of(await kube.create(CONFIGMAPS, body, namespace=NS)) for _ in range(2)]
        assert names[0] != names[1]
        assert all(name.startswith("job-") and len(name) == 9 for name in names)

    backend.run(check)


def test_a_stale_replace_is_a_conflict_and_a_current_one_is_not(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        first = await kube.create(CONFIGMAPS, configmap("a", x="1"), namespace=NS)
        second = await kube.replace(CONFIGMAPS, {**first, "data": {"x": "2"}}, namespace=NS)
        assert version_of(second) > version_of(first)
        with pytest.raises(ConflictError) as caught:
            await kube.replace(CONFIGMAPS, {**first, "data": {"x": "3"}}, namespace=NS)
        assert caught.value.message == (
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )

    backend.run(check)


def test_a_write_that_changes_nothing_keeps_the_version(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        first = await kube.create(CONFIGMAPS, configmap("a", x="1"), namespace=NS)
        for kind in (Patch.MERGE, Patch.STRATEGIC):
            same = await kube.patch(CONFIGMAPS, "a", {"data": {"x": "1"}}, kind=kind, namespace=NS)
            assert version_of(same) == version_of(first)

    backend.run(check)


def test_leases_demand_a_version_and_are_created_by_put(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 40}}
        await kube.replace(LEASES, lease, namespace=NS)
        with pytest.raises(InvalidError) as caught:
            await kube.replace(LEASES, lease, namespace=NS)
        assert caught.value.message == (
            'leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: '
            "must be specified for an update"
        )

    backend.run(check)


def test_each_kind_of_patch_does_what_it_says(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        await kube.create(PODS, pod("a"), namespace=NS)
        merged = await kube.patch(PODS, "a", {"metadata": {"labels": {"x": "1", "y": None}}}, namespace=NS)
        assert merged["metadata"]["labels"] == {"x": "1"}
        operations = [
            {"op": "test", "path": "/metadata/labels/x", "value": "1"},
            {"op": "remove", "path": "/metadata/labels/x"},
        ]
        plain = await kube.patch(PODS, "a", operations, kind=Patch.JSON, namespace=NS)
        assert "labels" not in plain["metadata"]
        image = {"spec": {"containers": [{"name": "c", "image": "busybox:2"}]}}
        strategic = await kube.patch(PODS, "a", image, kind=Patch.STRATEGIC, namespace=NS)
        assert strategic["spec"]["containers"][0]["image"] == "busybox:2"
        assert strategic["spec"]["containers"][0]["terminationMessagePath"] == "/dev/termination-log"
        assert strategic["metadata"]["generation"] == 2
        with pytest.raises(InvalidError) as caught:
            await kube.patch(PODS, "a", [{"op": "remove", "path": "/nowhere"}], kind=Patch.JSON, namespace=NS)
        assert caught.value.message == "the server rejected our request due to an error in our request"

    backend.run(check)


def test_a_patch_with_an_old_version_is_a_conflict(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        first = await kube.create(CONFIGMAPS, configmap("a"), namespace=NS)
        await kube.patch(CONFIGMAPS, "a", {"data": {"x": "1"}}, namespace=NS)
        version = first["metadata"]["resourceVersion"]
        with pytest.raises(ConflictError):
            await kube.patch(
                CONFIGMAPS, "a", {"metadata": {"resourceVersion": version}, "data": {"x": "2"}}, namespace=NS
            )

    backend.run(check)


def test_lists_are_ordered_and_selected(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        for name, color in (("c", "red"), ("a", "blue"), ("b", "red")):
            body = {"metadata": {"name": name, "labels": {"color": color}}}
            await kube.create(CONFIGMAPS, body, namespace=NS)
        everything = await kube.list(CONFIGMAPS, namespace=NS)
        assert [name_of(obj) for obj in everything.items] == ["a", "b", "c"]
        assert everything.items[0]["kind"] == "ConfigMap"
        red = await kube.list(CONFIGMAPS, namespace=NS, label_selector="color in (red)")
        assert [name_of(obj) for obj in red.items] == ["b", "c"]
        one = await kube.list(CONFIGMAPS, namespace=NS, field_selector="metadata.name=b")
        assert [name_of(obj) for obj in one.items] == ["b"]
        with pytest.raises(BadRequestError):
            await kube.list(CONFIGMAPS, namespace=NS, field_selector="data.x=1")

    backend.run(check)


def test_pages_show_the_state_of_the_first_one(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        for name in "abc":
            await kube.create(CONFIGMAPS, configmap(name), namespace=NS)
        first = await kube.list(CONFIGMAPS, namespace=NS, limit=2)
        assert [name_of(obj) for obj in first.items] == ["a", "b"]
        assert first.remaining == 1
        await kube.create(CONFIGMAPS, configmap("bb"), namespace=NS)
        rest = await kube.list(CONFIGMAPS, namespace=NS, limit=2, continue_token=first.continue_token)
        assert [name_of(obj) for obj in rest.items] == ["c"]
        assert rest.resource_version == first.resource_version
        assert rest.continue_token == ""

    backend.run(check)


def test_a_watch_tells_every_change_after_a_version(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        start = (await kube.list(CONFIGMAPS, namespace=NS)).resource_version
        await kube.create(CONFIGMAPS, configmap("a", x="1"), namespace=NS)
        stream = kube.watch(CONFIGMAPS, namespace=NS, resource_version=start)
        assert await take(stream, 1) == [("ADDED", "a")]
        await kube.patch(CONFIGMAPS, "a", {"data": {"x": "2"}}, namespace=NS)
        await kube.delete(CONFIGMAPS, "a", namespace=NS)
        assert await take(stream, 2) == [("MODIFIED", "a"), ("DELETED", "a")]
        await stream.aclose()  # type: ignore[attr-defined]

    backend.run(check)


def test_a_watch_without_a_version_begins_with_what_is_there(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        for name in "ab":
            await kube.create(CONFIGMAPS, configmap(name), namespace=NS)
        stream = kube.watch(CONFIGMAPS, namespace=NS)
        assert sorted(await take(stream, 2)) == [("ADDED", "a"), ("ADDED", "b")]
        await stream.aclose()  # type: ignore[attr-defined]

    backend.run(check)


def test_leaving_a_selector_is_deleted_with_the_old_content(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        start = (await kube.list(CONFIGMAPS, namespace=NS)).resource_version
        await kube.create(CONFIGMAPS, {"metadata": {"name": "a", "labels": {"on": "yes"}}}, namespace=NS)
        left = await kube.patch(CONFIGMAPS, "a", {"metadata": {"labels": {"on": "no"}}}, namespace=NS)
        await kube.patch(CONFIGMAPS, "a", {"metadata": {"labels": {"on": "yes"}}}, namespace=NS)
        stream = kube.watch(CONFIGMAPS, namespace=NS, label_selector="on=yes", resource_version=start)
        events = [await asyncio.wait_for(anext(stream), 60) for _ in range(3)]
        assert [event.type.value for event in events] == ["ADDED", "DELETED", "ADDED"]
        assert events[1].object["metadata"]["labels"] == {"on": "yes"}
        assert version_of(events[1].object) == version_of(left)
        await stream.aclose()  # type: ignore[attr-defined]

    backend.run(check)


def test_a_watch_ends_cleanly_on_its_timeout(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        await kube.create(CONFIGMAPS, configmap("a"), namespace=NS)
        events = [event async for event in kube.watch(CONFIGMAPS, namespace=NS, timeout_s=1)]
        assert [(event.type.value, name_of(event.object)) for event in events] == [("ADDED", "a")]

    backend.run(check)


def test_objects_of_a_missing_namespace_are_refused_and_listed_as_none(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        with pytest.raises(NotFoundError) as caught:
            await kube.create(CONFIGMAPS, configmap("a"), namespace="nowhere")
        assert caught.value.message == 'namespaces "nowhere" not found'
        assert (await kube.list(CONFIGMAPS, namespace="nowhere")).items == []

    backend.run(check)


def test_namespaces_carry_their_name_and_some_are_protected(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        namespace = await kube.get(NAMESPACES, NS)
        assert namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] == NS
        assert namespace["spec"] == {"finalizers": ["kubernetes"]}
        assert namespace["status"]["phase"] == "Active"
        with pytest.raises(ForbiddenError) as caught:
            await kube.delete(NAMESPACES, "kube-system")
        assert caught.value.message == 'namespaces "kube-system" is forbidden: this namespace may not be deleted'

    backend.run(check)


def test_a_pod_is_born_with_defaults(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        made = await kube.create(PODS, gpu_pod("a", 2), namespace=NS)
        assert made["spec"]["containers"][0]["resources"] == {
            "limits": {"falcon.com/gpu": "2"},
            "requests": {"falcon.com/gpu": "2"},
        }
        assert made["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"
        assert made["spec"]["schedulerName"] == "default-scheduler"
        assert made["spec"]["terminationGracePeriodSeconds"] == 30
        assert made["spec"]["priority"] == 0
        assert [t["key"] for t in made["spec"]["tolerations"]] == [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
        ]
        assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
        assert made["metadata"]["generation"] == 1

    backend.run(check)


def test_extended_resources_are_whole_and_limited(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        with pytest.raises(InvalidError, match="must be an integer"):
            await kube.create(PODS, gpu_pod("a", "500m"), namespace=NS)
        with pytest.raises(InvalidError, match="Limit must be set for non overcommitable resources"):
            await kube.create(PODS, gpu_pod("a", 1, "requests"), namespace=NS)

    backend.run(check)


def test_priority_comes_from_the_class(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        await kube.create(PRIORITY_CLASSES, {"metadata": {"name": "suite-high"}, "value": 1000})
        try:
            made = await kube.create(PODS, pod("a", priorityClassName="suite-high"), namespace=NS)
            assert made["spec"]["priority"] == 1000
            assert made["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
            system = await kube.create(PODS, pod("s", priorityClassName="system-node-critical"), namespace=NS)
            assert system["spec"]["priority"] == 2_000_001_000
            with pytest.raises(ForbiddenError) as caught:
                await kube.create(PODS, pod("b", priorityClassName="none"), namespace=NS)
            assert caught.value.message == 'pods "b" is forbidden: no PriorityClass with name none was found'
        finally:
            await kube.delete(PRIORITY_CLASSES, "suite-high")

    backend.run(check)


def test_status_and_spec_are_written_apart(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        made = await kube.create(PODS, pod("a"), namespace=NS)
        status = await kube.patch(
            PODS, "a", {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}, namespace=NS, subresource="status"
        )
        assert status["status"]["phase"] == "Running"
        assert "nodeName" not in status["spec"]
        assert status["metadata"]["generation"] == made["metadata"]["generation"]
        main = await kube.patch(PODS, "a", {"status": {"phase": "Failed"}}, namespace=NS)
        assert main["status"]["phase"] == "Running"

    backend.run(check)


DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")


def test_the_scale_of_an_object_is_read_and_written_through_its_subresource(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        labels = {"app": "a"}
        template = {"metadata": {"labels": labels}, "spec": pod("a")["spec"]}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        await kube.create(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": spec}, namespace=NS)
        try:
            scale = await kube.get(DEPLOYMENTS, "a", namespace=NS, subresource="scale")
            assert (scale["apiVersion"], scale["kind"], scale["spec"]) == ("autoscaling/v1", "Scale", {"replicas": 2})
            bodies = {Patch.MERGE: {"spec": {"replicas": 3}}, Patch.STRATEGIC: {"spec": {"replicas": 4}}}
            bodies[Patch.JSON] = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
            for count, kind in ((3, Patch.MERGE), (4, Patch.STRATEGIC), (5, Patch.JSON)):
                scaled = await kube.patch(DEPLOYMENTS, "a", bodies[kind], kind=kind, namespace=NS, subresource="scale")
                assert (scaled["kind"], scaled["spec"]) == ("Scale", {"replicas": count})
                assert (await kube.get(DEPLOYMENTS, "a", namespace=NS))["spec"]["replicas"] == count
            scale = {**scaled, "spec": {"replicas": 1}}
            assert (await kube.replace(DEPLOYMENTS, scale, subresource="scale"))["spec"] == {"replicas": 1}
            with pytest.raises(ConflictError):
                await kube.replace(DEPLOYMENTS, scale, namespace=NS, subresource="scale")
            less = {"spec": {"replicas": -1}}
            with pytest.raises(
                InvalidError, match=r'^Scale\.autoscaling "a" is invalid: spec\.replicas: Invalid value: -1'
            ):
                await kube.patch(DEPLOYMENTS, "a", less, namespace=NS, subresource="scale")
        finally:
            await kube.delete(DEPLOYMENTS, "a", namespace=NS)

    backend.run(check)


def test_a_pods_spec_is_fixed(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        await kube.create(PODS, pod("a"), namespace=NS)
        with pytest.raises(InvalidError, match="spec: Forbidden: pod updates may not change fields other than"):
            await kube.patch(PODS, "a", {"spec": {"hostNetwork": True}}, namespace=NS)

    backend.run(check)


def test_binding_assigns_once(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        await kube.create(PODS, pod("a"), namespace=NS)
        await kube.bind(NS, "a", "n1", annotations={"mews.test/why": "because"})
        bound = await kube.get(PODS, "a", namespace=NS)
        assert bound["spec"]["nodeName"] == "n1"
        assert bound["metadata"]["annotations"] == {"mews.test/why": "because"}
        condition = condition_of(bound, "PodScheduled")
        assert condition is not None and condition["status"] == "True"
        with pytest.raises(ConflictError) as caught:
            await kube.bind(NS, "a", "n2")
        assert caught.value.message == (
            'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
        )
        on_node = await kube.list(PODS, namespace=NS, field_selector="spec.nodeName=n1,status.phase!=Failed")
        assert [name_of(obj) for obj in on_node.items] == ["a"]

    backend.run(check)


def test_an_unassigned_pod_goes_at_once_and_an_assigned_one_with_grace(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        start = (await kube.list(PODS, namespace=NS)).resource_version
        for name in "ab":
            await kube.create(PODS, pod(name), namespace=NS)
        await kube.bind(NS, "b", "n1")
        await kube.delete(PODS, "a", namespace=NS)
        with pytest.raises(NotFoundError):
            await kube.get(PODS, "a", namespace=NS)
        waiting = await kube.delete(PODS, "b", namespace=NS)
        assert waiting["metadata"]["deletionGracePeriodSeconds"] == 30
        assert waiting["metadata"]["generation"] == 2
        await kube.delete(PODS, "b", namespace=NS, options=DeleteOptions(grace_period_s=0))
        stream = kube.watch(PODS, namespace=NS, resource_version=start)
        assert await take(stream, 8) == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("MODIFIED", "b"),
            ("MODIFIED", "a"),
            ("DELETED", "a"),
            ("MODIFIED", "b"),
            ("MODIFIED", "b"),
            ("DELETED", "b"),
        ]
        await stream.aclose()  # type: ignore[attr-defined]

    backend.run(check)


def test_a_finalizer_holds_an_object_until_it_is_removed(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        start = (await kube.list(CONFIGMAPS, namespace=NS)).resource_version
        await kube.create(CONFIGMAPS, {"metadata": {"name": "a", "finalizers": ["mews.test/hold"]}}, namespace=NS)
        held = await kube.delete(CONFIGMAPS, "a", namespace=NS)
        assert held["metadata"]["deletionTimestamp"]
        with pytest.raises(InvalidError, match="no new finalizers can be added if the object is being deleted"):
            await kube.patch(
                CONFIGMAPS, "a", {"metadata": {"finalizers": ["mews.test/hold", "mews.test/b"]}}, namespace=NS
            )
        await kube.patch(CONFIGMAPS, "a", {"metadata": {"finalizers": None}}, namespace=NS)
        stream = kube.watch(CONFIGMAPS, namespace=NS, resource_version=start)
        assert await take(stream, 3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        await stream.aclose()  # type: ignore[attr-defined]

    backend.run(check)


def test_a_failed_precondition_keeps_the_object(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        made = await kube.create(CONFIGMAPS, configmap("a"), namespace=NS)
        other = "00000000-0000-4000-8000-000000000000"
        with pytest.raises(ConflictError) as caught:
            options = DeleteOptions(preconditions=Preconditions(uid=other))
            await kube.delete(CONFIGMAPS, "a", namespace=NS, options=options)
        assert caught.value.message == (
            f'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition ({other}) does not match the '
            f"UID in record ({made['metadata']['uid']}). The object might have been deleted and then recreated"
        )
        options = DeleteOptions(preconditions=Preconditions(uid=made["metadata"]["uid"]))
        status = await kube.delete(CONFIGMAPS, "a", namespace=NS, options=options)
        assert status["status"] == "Success"

    backend.run(check)


def test_delete_collection_answers_what_was(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        for name, keep in (("a", "no"), ("b", "yes")):
            await kube.create(CONFIGMAPS, {"metadata": {"name": name, "labels": {"keep": keep}}}, namespace=NS)
        gone = await kube.delete_collection(CONFIGMAPS, namespace=NS, label_selector="keep=no")
        assert [name_of(obj) for obj in gone.items] == ["a"]
        left = await kube.list(CONFIGMAPS, namespace=NS, label_selector="keep")
        assert [name_of(obj) for obj in left.items] == ["b"]

    backend.run(check)


def test_an_evicted_pod_says_why_it_goes(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        await kube.create(PODS, pod("a"), namespace=NS)
        await kube.bind(NS, "a", "n1")
        await kube.evict(NS, "a")
        going = await kube.get(PODS, "a", namespace=NS)
        condition = condition_of(going, "DisruptionTarget")
        assert condition is not None and condition["reason"] == "EvictionByEvictionAPI"
        assert going["metadata"]["deletionTimestamp"]

    backend.run(check)


def test_a_node_is_born_not_ready(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        body = {"metadata": {"name": "suite-node"}, "status": {"capacity": {"cpu": 4, "falcon.com/gpu": "2"}}}
        node = await kube.create(NODES, body)
        try:
            assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
            assert node["status"]["allocatable"] == {"cpu": "4", "falcon.com/gpu": "2"}
            condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            patched = await kube.patch(
                NODES, "suite-node", {"status": {"conditions": [condition]}}, kind=Patch.STRATEGIC, subresource="status"
            )
            ready = condition_of(patched, "Ready")
            assert ready is not None and ready["status"] == "True"
            assert "generation" not in node["metadata"]
        finally:
            await kube.delete(NODES, "suite-node")

    backend.run(check)


def test_both_event_groups_show_one_store(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        event = {
            "metadata": {"name": "a"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "mews",
            "reportingInstance": "mews-1",
            "action": "Testing",
            "reason": "Tested",
            "regarding": {"kind": "Pod", "namespace": NS, "name": "p"},
            "note": "as new",
            "type": "Normal",
        }
        await kube.create(NEW_EVENTS, event, namespace=NS)
        core = await kube.get(EVENTS, "a", namespace=NS)
        assert (core["message"], core["involvedObject"]["name"]) == ("as new", "p")
        assert core["reportingComponent"] == "mews"
        found = await kube.list(EVENTS, namespace=NS, field_selector="involvedObject.name=p,reason=Tested")
        assert [name_of(obj) for obj in found.items] == ["a"]
        new = await kube.get(NEW_EVENTS, "a", namespace=NS)
        assert new["apiVersion"] == "events.k8s.io/v1" and new["note"] == "as new"
        with pytest.raises(InvalidError, match="action: Required value"):
            await kube.create(NEW_EVENTS, {**event, "metadata": {"name": "b"}, "action": ""}, namespace=NS)

    backend.run(check)


DEFINITION: Object = {
    "metadata": {"name": "tfjobs.mews.test"},
    "spec": {
        "group": "mews.test",
        "scope": "Namespaced",
        "names": {"plural": "tfjobs", "kind": "TFJob", "shortNames": ["tj"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["replicas"],
                                "properties": {
                                    "replicas": {"type": "integer", "minimum": 1, "maximum": 8},
                                    "policy": {"type": "string", "enum": ["a", "b"], "default": "a"},
                                },
                            },
                            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}


async def define(kube: KubeApi) -> None:
    await kube.create(CRDS, DEFINITION)
    for _ in range(100):
        established = condition_of(await kube.get(CRDS, "tfjobs.mews.test"), "Established")
        if established is not None and established["status"] == "True":
            break
        await asyncio.sleep(0.1)
    for _ in range(100):
        try:
            await kube.list(TFJOBS, namespace=NS)
            return
        except ApiError:
            await asyncio.sleep(0.1)


def test_a_definition_makes_a_kind_that_defaults_prunes_and_validates(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        await define(kube)
        try:
            body = {"metadata": {"name": "a"}, "spec": {"replicas": 2, "what": 1}, "status": {"phase": "x"}}
            made = await kube.create(TFJOBS, body, namespace=NS)
            assert made["spec"] == {"replicas": 2, "policy": "a"}
            assert "status" not in made
            assert made["metadata"]["generation"] == 1
            status = await kube.patch(TFJOBS, "a", {"status": {"phase": "y"}}, namespace=NS, subresource="status")
            assert status["metadata"]["generation"] == 1 and status["status"] == {"phase": "y"}
            spec = await kube.patch(TFJOBS, "a", {"spec": {"replicas": 3}, "status": {"phase": "z"}}, namespace=NS)
            assert spec["metadata"]["generation"] == 2 and spec["status"] == {"phase": "y"}
            with pytest.raises(InvalidError) as caught:
                await kube.patch(TFJOBS, "a", {"spec": {"replicas": "many"}}, namespace=NS)
            assert caught.value.message == (
                'TFJob.mews.test "a" is invalid: spec.replicas: Invalid value: "string": spec.replicas in body must be '
                'of type integer: "string"'
            )
            with pytest.raises(InvalidError, match="should be less than or equal to 8"):
                await kube.patch(TFJOBS, "a", {"spec": {"replicas": 9}}, namespace=NS)
            with pytest.raises(InvalidError, match='Unsupported value: "c": supported values: "a", "b"'):
                await kube.patch(TFJOBS, "a", {"spec": {"policy": "c"}}, namespace=NS)
            with pytest.raises(ApiError) as refused:
                await kube.patch(TFJOBS, "a", {"spec": {}}, kind=Patch.STRATEGIC, namespace=NS)
            assert refused.value.code == 415
        finally:
            await kube.delete(CRDS, "tfjobs.mews.test")

    backend.run(check)


def test_discovery_names_what_is_served(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        served = await kube.discovery()
        assert {PODS, NODES, EVENTS, NEW_EVENTS, LEASES, CRDS} <= set(served)
        with pytest.raises(NotFoundError):
            await kube.list(Resource("", "v1", "podlings", "Podling"), namespace=NS)

    backend.run(check)


def test_log_of_an_unassigned_pod_is_empty_and_a_wrong_container_is_refused(backend: Backend) -> None:
    async def check(kube: KubeApi) -> None:
        two = {"metadata": {"name": "two"}, "spec": {"containers": [{"name": n, "image": "i:1"} for n in "xy"]}}
        await kube.create(PODS, pod("a"), namespace=NS)
        await kube.create(PODS, two, namespace=NS)
        assert [chunk async for chunk in kube.log(NS, "a")] == []
        with pytest.raises(BadRequestError) as caught:
            assert [chunk async for chunk in kube.log(NS, "two")] == []
        assert caught.value.message == "a container name must be specified for pod two, choose one of: [x y]"

    backend.run(check)
