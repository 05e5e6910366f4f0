"""What becomes of a TFJob's pods and services, as events about the TFJob with Kubeflow's names and texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mews.kube.api.objects import Object, name_of, namespace_of, uid_of
from mews.kube.api.resources import PODS, Resource
from mews.systems.kod2.events import TFJobEventWriter
from mews.systems.kod2.tfjob import CONTAINER, TFJob

RESTART_POLICY_TEXT = "Restart policy in pod template will be overwritten by restart policy in replica spec"


class PodEventWriter:
    """Tells of pods and services made and deleted, and of containers that ended; each once."""

    def __init__(self, events: TFJobEventWriter) -> None:
        self._events = events
        self._ended: dict[str, set[str]] = {}

    async def created(self, resource: Resource, obj: Object) -> None:
        """A pod or service was created."""
        await self._about(resource, obj, "SuccessfulCreate", "Created")

    async def deleted(self, resource: Resource, obj: Object) -> None:
        """A pod or service was deleted."""
        await self._about(resource, obj, "SuccessfulDelete", "Deleted")

    async def _about(self, resource: Resource, obj: Object, reason: str, text: str) -> None:
        owner = next(ref for ref in obj["metadata"]["ownerReferences"] if ref.get("controller"))
        named = {"name": owner["name"], "namespace": namespace_of(obj), "uid": owner["uid"]}
        kind = "pod" if resource is PODS else "service"
        message = f"{text} {kind}: {name_of(obj)}"
        self._events.enqueue({"metadata": named}, "Normal", f"{reason}{kind.capitalize()}", message)

    async def templates(self, tfjob: Object, job: TFJob) -> None:
        """A pod template that names a restart policy of its own is told that it does not count."""
        specs = (replicas.template.get("spec") or {} for replicas in job.roles.values())
        if any(spec.get("restartPolicy") for spec in specs):
            self._events.enqueue(tfjob, "Warning", "SetPodTemplateRestartPolicy", RESTART_POLICY_TEXT)

    async def ends(self, tfjob: Object, pods: Mapping[str, Object]) -> None:
        """Containers of these pods that have ended since the last look."""
        known = self._ended.setdefault(uid_of(tfjob), set())
        for _, pod in sorted(pods.items()):
            for mark, code in _exits(pod):
                if mark in known:
                    continue
                known.add(mark)
                message = f"Pod: {namespace_of(pod)}.{name_of(pod)} exited with code {code}"
                self._events.enqueue(tfjob, "Normal", "ExitedWithCode", message)

    def forget(self, uid: str) -> None:
        """The TFJob is finished or gone."""
        self._ended.pop(uid, None)


def _exits(pod: Object) -> Iterator[tuple[str, int]]:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated")
        if ended is not None and container.get("name") == CONTAINER:
            yield f"{uid_of(pod)}/{container.get('restartCount', 0)}", int(ended.get("exitCode", 0))
