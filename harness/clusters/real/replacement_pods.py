"""Replacements in a real cluster: their pods, watched for what they die of, and the objects of the user's manifests
from their creation to their end. What is about to be created is written down in the namespace first, so that whoever
uses the cluster next finds it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from mews.harness.clusters.real.rollout import Notify
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.manifests.parts import COMPONENT, MANAGED
from mews.harness.manifests.replacements import extender_name
from mews.harness.manifests.spec import StackSpec
from mews.harness.ports.cluster import ComponentsCrashedError
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.kinds import complete, resource_of
from mews.kube.api.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from mews.kube.api.objects import Object, is_deleting, name_of, node_name_of, phase_of, uid_of
from mews.kube.api.resources import CONFIGMAPS, PODS, Resource
from mews.kube.client.port import DeleteOptions, KubeApi
from mews.kube.clock import rest

RECORD = "mews-brought"
"""The ConfigMap that says what the user's manifests have created."""
_FILE = "objects.json"
_LOOK_S = 0.25
_WATCH_S = 0.5
_STEADY_S = 1.5
_EARLY = 2
"""Ends of a program that are forgiven until the chassis is up: the second comes with a kubelet's first back-off."""
_RUNS_S = 120.0
_GONE_S = 90.0
_UNPULLED = ("ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_REFUSED = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_SELECTING = ("Deployment", "DaemonSet", "StatefulSet", "ReplicaSet")


class ReplacementPods:
    """Those of one scenario. ``kube`` is the namespace's own, ``view`` the cluster as the scenario writes to it;
    ``hosts`` maps nodes to hosts."""

    def __init__(
        self, stack: StackSpec, *, kube: KubeApi, view: KubeApi, journal: Journal, hosts: Mapping[str, str]
    ) -> None:
        self._stack = stack
        self._kube = kube
        self._view = view
        self._journal = journal
        self._hosts = hosts
        self._names = {name: name for name in stack.programs if not stack.runs_foreign(name)} | {
            extender_name(number): f"extender/{number + 1}"
            for number, extender in enumerate(stack.extenders)
            if extender is not None
        }
        self._ours: list[tuple[Resource, Object]] = []
        self._ends: dict[str, int] = {}
        self._before: dict[str, int] = {}

    # Programs

    async def clean(self) -> None:
        """Delete pods that an earlier scenario's program has ended in: the next one has a fresh start."""
        for pod in await self._pods():
            if any(each.get("restartCount") for each in _statuses(pod)):
                await self._end(PODS, name_of(pod), self._stack.namespace)

    async def _pods(self) -> list[Object]:
        if not self._names:
            return []
        selector = f"{MANAGED}=mews,{COMPONENT} in ({','.join(sorted(self._names))})"
        listed = await self._kube.list(PODS, namespace=self._stack.namespace, label_selector=selector)
        return [pod for pod in listed.items if not is_deleting(pod)]

    def _name(self, pod: Object) -> str:
        component = self._names[pod["metadata"]["labels"][COMPONENT]]
        if component not in self._stack.per_node():
            return component
        return f"{component}/{self._hosts.get(node_name_of(pod), '?')}"

    async def check(self, forgiven: int = 0) -> None:
        """Raises RequirementError for an image that nodes cannot have, ComponentsCrashedError for a program that has
        ended more often than ``forgiven``, and than before ``begin``."""
        with contextlib.suppress(UnavailableError):  # asked again soon
            for pod in await self._pods():
                await self._check(self._name(pod), pod, forgiven)

    async def check_early(self) -> None:
        """As ``check``, while the chassis comes up beside them: who cannot wait for it ends, and is started again."""
        await self.check(_EARLY)

    async def begin(self) -> None:
        """They are about to be started anew: what they have ended of before is no news."""
        for pod in await self._pods():
            before = max((_ends(each) for each in _statuses(pod)), default=0)
            self._before[uid_of(pod)] = self._ends[uid_of(pod)] = before

    async def _check(self, name: str, pod: Object, forgiven: int = 0) -> None:
        for each in _statuses(pod):
            waiting = (each.get("state") or {}).get("waiting") or {}
            output = " ".join(str(waiting.get("message") or waiting.get("reason")).split())
            if waiting.get("reason") in _UNPULLED:
                image = next((c["image"] for c in pod["spec"]["containers"] if c["name"] == each["name"]), "")
                raise RequirementError(f"{name}: {image}: no such image in Docker, and nodes cannot pull it: {output}")
            if waiting.get("reason") in _REFUSED:
                raise RequirementError(f"{name}: its container cannot be started: {output}")
            if _ends(each) > max(forgiven, self._before.get(uid_of(pod), 0)):
                raise ComponentsCrashedError(f"{name} {await self._last_words(pod, each)}")

    async def _last_words(self, pod: Object, each: Object) -> str:
        ended = _ended(each) or {}
        running = "running" in (each.get("state") or {})
        words = b""
        with contextlib.suppress(ApiError, UnavailableError):
            stream = self._kube.log(
                pod["metadata"]["namespace"], name_of(pod), container=each["name"], previous=running, tail_lines=1
            )
            async for chunk in stream:
                words += chunk
        output = words.decode("utf-8", "replace").strip() or "it said nothing"
        return f"exited with code {ended.get('exitCode')}: {output}"

    async def steady(self) -> None:
        """Give programs a moment in which to fail. Raises as ``check``."""
        if self._names:
            await asyncio.sleep(_STEADY_S)
            await self.check()

    async def watch(self) -> None:
        """Write down whenever one of them ends by itself, until cancelled. The kubelet starts it again."""
        while True:
            with contextlib.suppress(ApiError, UnavailableError):
                for pod in await self._pods():
                    await self._note(pod)
            await rest(_WATCH_S)

    async def _note(self, pod: Object) -> None:
        for each in _statuses(pod):
            ends = _ends(each)
            if ends > self._ends.get(uid_of(pod), 0):
                self._ends[uid_of(pod)] = ends
                cause = f"ProcessEndedError: {await self._last_words(pod, each)}"
                self._journal.write("component", self._name(pod), "crashed", cause=cause)

    # Manifests

    async def apply(self, manifests: Mapping[str, Sequence[Object]], notify: Notify) -> None:
        """Create the manifests' objects, and wait until their pods run.

        Raises ScenarioError for what the API does not take, RequirementError for what it does not let us do or does not
        run.
        """
        for component, objects in manifests.items():
            for given in objects:
                resource = await resource_of(self._view, given["kind"], given.get("apiVersion", ""))
                self._ours.append((resource, complete(given, resource)))
                await self._write_down()
                await self._create(component, *self._ours[-1])
        deadline = asyncio.get_running_loop().time() + _RUNS_S
        while waiting := await self._waiting():
            notify(f"waiting for {waiting}")
            if asyncio.get_running_loop().time() > deadline:
                raise RequirementError(f"not within {_RUNS_S:g} s: {waiting}")
            await rest(_LOOK_S)

    async def _create(self, component: str, resource: Resource, obj: Object) -> None:
        where = f"{self._stack.where(component)}.manifest: {obj['kind']} {name_of(obj)}"
        try:
            await self._view.create(resource, obj, namespace=obj["metadata"].get("namespace"), field_manager="mews")
        except AlreadyExistsError as error:
            self._ours.pop()
            await self._write_down()
            if obj["kind"] != "Namespace":
                raise RequirementError(f"{where}: already exists, and was not created by Mews") from error
        except (InvalidError, BadRequestError) as error:
            raise ScenarioError(f"{where}: {' '.join(str(error).split())}") from error
        except (ForbiddenError, NotFoundError) as error:
            raise RequirementError(f"{where}: {' '.join(str(error).split())}") from error

    async def _write_down(self) -> None:
        record = [
            {**asdict(resource), "name": name_of(obj), "in": obj["metadata"].get("namespace"), "of": _selector(obj)}
            for resource, obj in self._ours
        ]
        content = {"metadata": {"name": RECORD}, "data": {_FILE: json.dumps(record)}}
        namespace = self._stack.namespace
        try:
            await self._kube.create(CONFIGMAPS, content, namespace=namespace)
        except AlreadyExistsError:
            await self._kube.patch(CONFIGMAPS, RECORD, {"data": content["data"]}, namespace=namespace)

    async def _waiting(self) -> str | None:
        for resource, obj in self._ours:
            namespace = obj["metadata"].get("namespace")
            pods: list[Object] = []
            if resource.kind == "Pod":
                with contextlib.suppress(NotFoundError):
                    pods = [await self._view.get(PODS, name_of(obj), namespace=namespace)]
            elif resource.kind in _SELECTING and (obj["spec"].get("replicas", 1)):
                pods += (await self._view.list(PODS, namespace=namespace, label_selector=_selector(obj))).items
            else:
                continue
            for pod in pods:
                await self._check(f"{resource.kind} {name_of(obj)}", pod)
            if not pods or any(phase_of(pod) == "Pending" for pod in pods):
                return f"{resource.kind} {name_of(obj)} of the manifest"
        return None

    async def remove(self) -> None:
        """Delete what the user's manifests have created, in this scenario or the one before.

        Raises RequirementError for what does not go.
        """
        namespace = self._stack.namespace
        try:
            record = json.loads((await self._kube.get(CONFIGMAPS, RECORD, namespace=namespace))["data"][_FILE])
        except (NotFoundError, LookupError, ValueError):
            return
        for entry in reversed(record):
            name, inside, selector = entry.pop("name"), entry.pop("in"), entry.pop("of")
            resource = Resource(**entry)
            await self._end(resource, name, inside)
            if selector:
                for pod in (await self._view.list(PODS, namespace=inside, label_selector=selector)).items:
                    await self._end(PODS, name_of(pod), inside)
            await self._gone(resource, name, inside)
        self._ours.clear()
        with contextlib.suppress(NotFoundError):
            await self._kube.delete(CONFIGMAPS, RECORD, namespace=namespace)

    async def _end(self, resource: Resource, name: str, namespace: str | None) -> None:
        options = DeleteOptions(grace_period_s=0 if resource.kind == "Pod" else None, propagation="Background")
        with contextlib.suppress(NotFoundError):
            await self._view.delete(resource, name, namespace=namespace, options=options)

    async def _gone(self, resource: Resource, name: str, namespace: str | None) -> None:
        deadline = asyncio.get_running_loop().time() + _GONE_S
        with contextlib.suppress(NotFoundError):
            while True:
                await self._view.get(resource, name, namespace=namespace)
                if asyncio.get_running_loop().time() > deadline:
                    raise RequirementError(f"{resource.kind} {namespace}/{name} is not gone after {_GONE_S:g} s")
                await rest(_LOOK_S)


def _statuses(pod: Object) -> list[Object]:
    return list((pod.get("status") or {}).get("containerStatuses") or ())


def _ended(status: Object) -> Object | None:
    """Return how a container ended that should not have: its last end, or None."""
    now = (status.get("state") or {}).get("terminated")
    return now or ((status.get("lastState") or {}).get("terminated") if status.get("restartCount") else None)


def _ends(status: Object) -> int:
    """Return how often it has ended."""
    return int(status.get("restartCount") or 0) + ("terminated" in (status.get("state") or {}))


def _selector(obj: Object) -> str:
    labels = ((obj.get("spec") or {}).get("selector") or {}).get("matchLabels") if obj["kind"] in _SELECTING else None
    return ",".join(f"{name}={value}" for name, value in (labels or {}).items())
