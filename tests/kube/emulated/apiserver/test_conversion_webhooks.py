"""Objects of a custom kind are converted by its webhook, and who waits for it waits alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mews.kube.api.errors import NotFoundError, ServerError
from mews.kube.api.resources import CONFIGMAPS, Resource
from mews.kube.client.port import Patch
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects import update
from mews.kube.emulated.core.store.admission import WebhookCall, WebhookError, completed
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.store import Store

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
V1 = Resource("x.test", "v1", "tasks", "Task", namespaced=False)
V2 = Resource("x.test", "v2", "tasks", "Task", namespaced=False)


def _definition() -> dict[str, Any]:
    def version(name: str, field: str, *, storage: bool) -> dict[str, Any]:
        spec = {"type": "object", "properties": {field: {"type": "string"}}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {"name": name, "served": True, "storage": storage, "schema": schema}

    service = {"name": "hook", "namespace": "default", "path": "/convert"}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    return {
        "metadata": {"name": "tasks.x.test"},
        "spec": {
            "group": "x.test",
            "scope": "Cluster",
            "names": {"plural": "tasks", "kind": "Task"},
            "versions": [version("v1", "old", storage=True), version("v2", "new", storage=False)],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


class Renames:
    """A conversion webhook: v1's ``old`` is v2's ``new``; it keeps what it was asked, and may be changed to fail."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.asked: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.spoil: Callable[[dict[str, Any]], Any] = lambda response: {"response": response}

    async def review(self, call: WebhookCall) -> Any:
        request = call.review["request"]
        self.asked.append(len(request["objects"]))
        await self.gate.wait()
        found = [self._renamed(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
        return self.spoil({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": found})

    def _renamed(self, obj: dict[str, Any], api_version: str) -> dict[str, Any]:
        before, after = ("old", "new") if api_version == "x.test/v2" else ("new", "old")
        metadata = {**obj["metadata"], "labels": {"by": "webhook"}, "name": "the webhook may not rename it"}
        return {**obj, "apiVersion": api_version, "metadata": metadata, "spec": {after: obj["spec"][before]}}


def converting(check: Callable[[InProcessKube, Renames], Awaitable[None]]) -> None:
    async def main() -> None:
        store = fresh_store(lambda: 0.0, random.Random(1))
        hook = Renames(store)
        store.webhooks = hook
        kube = InProcessKube(store)
        await kube.create(CRDS, _definition())
        await check(kube, hook)

    asyncio.run(main())


def task(resource: Resource, name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": "Task", "metadata": {"name": name}, "spec": spec}


def test_an_object_is_stored_in_one_version_and_shown_in_the_other_by_the_webhook() -> None:
    async def check(kube: InProcessKube, hook: Renames) -> None:
        made = await kube.create(V2, task(V2, new="x"))
        assert (made["apiVersion"], made["spec"], made["metadata"]["name"]) == ("x.test/v2", {"new": "x"}, "a")
        stored = await kube.get(V1, "a")
        assert (stored["spec"], stored["metadata"]["labels"]) == ({"old": "x"}, {"by": "webhook"})
        changed = await kube.patch(V2, "a", {"spec": {"new": "y"}})
        assert changed["spec"] == {"new": "y"}
        assert (await kube.get(V1, "a"))["spec"] == {"old": "y"}
        await kube.delete(V2, "a")
        with pytest.raises(NotFoundError):
            await kube.get(V1, "a")

    converting(check)


def test_a_dry_run_is_shown_as_it_would_be() -> None:
    async def check(kube: InProcessKube, hook: Renames) -> None:
        await kube.create(V1, task(V1, old="x"))
        assert (await kube.get(V2, "a"))["spec"] == {"new": "x"}
        store, kind = hook.store, hook.store.kinds.of(V2)
        body = {"spec": {"new": "y"}}
        shown = await completed(
            lambda request: update.patch(store, kind, "", "a", body, patch_kind=Patch.MERGE, request=request),
            WriteRequest(dry_run=True, answers={}),
        )
        assert shown["spec"] == {"new": "y"}
        assert (await kube.get(V2, "a"))["spec"] == {"new": "x"}

    converting(check)


def test_a_list_is_converted_by_one_review_and_not_asked_for_again() -> None:
    async def check(kube: InProcessKube, hook: Renames) -> None:
        for number in range(5):
            await kube.create(V1, task(V1, f"t{number}", old=str(number)))
        assert hook.asked == []
        found = await kube.list(V2)
        assert [obj["spec"] for obj in found.items] == [{"new": str(number)} for number in range(5)]
        await kube.list(V2)
        assert hook.asked == [5]

    converting(check)


def test_who_waits_for_the_webhook_waits_alone() -> None:
    async def check(kube: InProcessKube, hook: Renames) -> None:
        await kube.create(V1, task(V1, old="x"))
        hook.gate.clear()
        waiting = asyncio.create_task(kube.get(V2, "a"))
        await kube.create(CONFIGMAPS, {"metadata": {"name": "c"}}, namespace="default")
        assert (await kube.get(V1, "a"))["spec"] == {"old": "x"}
        assert not waiting.done()
        hook.gate.set()
        assert (await waiting)["spec"] == {"new": "x"}

    converting(check)


def test_a_watch_shows_what_the_webhook_made_of_the_objects() -> None:
    async def check(kube: InProcessKube, _hook: Renames) -> None:
        await kube.create(V1, task(V1, old="x"))
        watch = kube.watch(V2, resource_version="0")
        assert (await anext(watch)).object["spec"] == {"new": "x"}
        await kube.patch(V1, "a", {"spec": {"old": "y"}})
        assert (await anext(watch)).object["spec"] == {"new": "y"}
        await watch.aclose()

    converting(check)


def test_nothing_is_written_that_could_not_be_shown() -> None:
    async def check(kube: InProcessKube, hook: Renames) -> None:
        hook.spoil = lambda response: {"response": {**response, "result": {"status": "Failure", "message": "no"}}}
        with pytest.raises(ServerError, match=r"conversion webhook for x\.test/v2, Kind=Task failed: no"):
            await kube.create(V2, task(V2, new="x"))
        with pytest.raises(NotFoundError):
            await kube.get(V1, "a")

    converting(check)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda response: {"response": {**response, "uid": "other"}}, "expected response.uid="),
        (lambda response: {"response": {**response, "convertedObjects": []}}, "webhook returned 0 objects, expected 1"),
        (lambda response: {"response": {**response, "convertedObjects": [1]}}, "it is no object"),
        (
            lambda response: {"response": {**response, "convertedObjects": [task(V1, old="x")]}},
            "invalid apiVersion: 'x.test/v1', expected 'x.test/v2'",
        ),
        (lambda _: {"response": []}, "invalid response"),
        (lambda _: "text", "invalid response"),
    ],
)
def test_an_answer_that_is_none_fails_who_needed_it(spoil: Callable[[dict[str, Any]], Any], fault: str) -> None:
    async def check(kube: InProcessKube, hook: Renames) -> None:
        await kube.create(V1, task(V1, old="x"))
        hook.spoil = spoil
        with pytest.raises(ServerError, match=fault):
            await kube.get(V2, "a")
        hook.spoil = lambda response: {"response": response}
        assert (await kube.get(V2, "a"))["spec"] == {"new": "x"}

    converting(check)


def test_a_webhook_that_nobody_serves_fails_who_needed_it_and_the_definition_can_be_deleted() -> None:
    async def check(kube: InProcessKube, hook: Renames) -> None:
        async def gone(call: WebhookCall) -> Any:
            raise WebhookError(f'Post "{call.url}": service "hook" not found')

        await kube.create(V1, task(V1, old="x"))
        hook.review = gone  # type: ignore[method-assign]
        url = "https://hook.default.svc:443/convert?timeout=30s"
        with pytest.raises(ServerError) as caught:
            await kube.get(V2, "a")
        assert caught.value.message == (
            f'conversion webhook for x.test/v1, Kind=Task failed: Post "{url}": service "hook" not found'
        )
        await kube.delete(CRDS, "tasks.x.test")
        with pytest.raises(NotFoundError):
            await kube.get(V1, "a")

    converting(check)
