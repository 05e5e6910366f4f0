"""Makes the claims that pods bring with them: of ephemeral volumes, and of templates of resource claims.

Source: pkg/controller/volume/ephemeral and pkg/controller/resourceclaim of Kubernetes 1.34. Of the latter without what
becomes of reservations: nothing is allocated here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.brought_claims import brings_claim_templates, brings_ephemeral_volumes
from mews.kube.api.errors import ApiError, NotFound
from mews.kube.api.objects import Object, is_deleting, is_terminal, key_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
)
from mews.kube.api.volumes import not_made_for
from mews.kube.client.port import Patch
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers, controller_reference
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop
from mews.kube.events import EventRecorder, pod_reference

_OF_ENTRY = "resource.kubernetes.io/pod-claim-name"
_STATUS_MANAGER = "ResourceClaimController"
_LONGEST = 57
"""Of a name that the API server lengthens by a hyphen and five characters."""


class EphemeralVolumes:
    """Component: makes the claim of each ephemeral volume."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._kube = context.kube
        self._events = events
        self._pods, self._claims = informers.of(PODS), informers.of(PERSISTENT_VOLUME_CLAIMS)
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._pods.synced()
        await self._claims.synced()
        self._pods.on_change(self._pod_changed)
        self._claims.on_change(self._claim_changed)
        await self._loop.run()

    def _pod_changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None and brings_ephemeral_volumes(new) and not is_deleting(new):
            self._loop.add(key_of(new))

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            for owner in old["metadata"].get("ownerReferences") or ():
                if owner.get("kind") == "Pod":
                    self._loop.add(f"{namespace_of(old)}/{owner['name']}")

    async def _sync(self, key: str) -> None:
        pod = self._pods.at(key)
        if pod is None or is_deleting(pod):
            return
        for volume in pod["spec"].get("volumes") or ():
            if "ephemeral" not in volume:
                continue
            try:
                await self._make(pod, volume)
            except ApiError as failed:
                text = f"ephemeral volume {volume['name']}: {failed}"
                self._events.event(pod_reference(pod), "Warning", "FailedBinding", text)
                raise

    async def _make(self, pod: Object, volume: Mapping[str, Any]) -> None:
        name = f"{name_of(pod)}-{volume['name']}"
        known = self._claims.get(name, namespace_of(pod))
        if known is not None:
            if why := not_made_for(pod, known):
                raise ApiError(why)
            return
        template = volume["ephemeral"]["volumeClaimTemplate"]
        metadata = _metadata(pod, template)
        body = {"metadata": {**metadata, "name": name}, "spec": template["spec"]}
        await self._kube.create(PERSISTENT_VOLUME_CLAIMS, body, namespace=namespace_of(pod), field_manager=MANAGER)


class ResourceClaims:
    """Component: makes a resource claim of each template that a pod names, and notes its name in the pod's status."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._kube = context.kube
        self._events = events
        self._pods = informers.of(PODS)
        self._claims, self._templates = informers.of(RESOURCE_CLAIMS), informers.of(RESOURCE_CLAIM_TEMPLATES)
        self._made: dict[tuple[str, str], str] = {}
        """(pod's uid, entry) -> the claim that was made, until the pod says so."""
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in (self._pods, self._claims, self._templates):
            await informer.synced()
        self._pods.on_change(self._pod_changed)
        self._claims.on_change(self._claim_changed)
        await self._loop.run()

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and brings_claim_templates(new):
            self._loop.add(key_of(new))
        if new is None and old is not None:
            for known in [known for known in self._made if known[0] == uid_of(old)]:
                del self._made[known]

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        for owner in (new or old or {})["metadata"].get("ownerReferences") or ():
            if owner.get("kind") == "Pod" and (new is None or old is None):
                self._loop.add(f"{namespace_of(new or old or {})}/{owner['name']}")

    async def _sync(self, key: str) -> None:
        pod = self._pods.at(key)
        if pod is None:
            return
        if is_terminal(pod):
            await self._drop(pod)
            return
        if is_deleting(pod):
            return
        made: dict[str, str] = {}
        for entry in pod["spec"].get("resourceClaims") or ():
            if "resourceClaimTemplateName" not in entry:
                continue
            try:
                name = await self._claim_for(pod, entry)
            except ApiError as failed:
                text = f"PodResourceClaim {entry['name']}: {failed}"
                self._events.event(pod_reference(pod), "Warning", "FailedResourceClaimCreation", text)
                raise
            if _noted(pod, entry["name"]) != name:
                made[entry["name"]] = name
        if made:
            await self._note(pod, made)

    async def _claim_for(self, pod: Object, entry: Mapping[str, Any]) -> str:
        """The name of the claim of an entry: the one noted, one that was made before, or a new one."""
        namespace, noted = namespace_of(pod), _noted(pod, entry["name"])
        if noted is not None and (claim := self._claims.get(noted, namespace)) is not None and _owns(pod, claim):
            return noted
        made = self._made.get((uid_of(pod), entry["name"]))
        if made is not None and made != noted:
            return made
        for claim in self._claims.items():
            notes = claim["metadata"].get("annotations") or {}
            if namespace_of(claim) == namespace and _owns(pod, claim) and notes.get(_OF_ENTRY) == entry["name"]:
                return name_of(claim)
        return await self._make(pod, entry)

    async def _make(self, pod: Object, entry: Mapping[str, Any]) -> str:
        wanted, namespace = str(entry["resourceClaimTemplateName"]), namespace_of(pod)
        template = self._templates.get(wanted, namespace)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{wanted}" not found'
            raise NotFound(f'resource claim template "{wanted}": {missing}')
        metadata = _metadata(pod, template["spec"])
        metadata["annotations"] = {**metadata.get("annotations", {}), _OF_ENTRY: entry["name"]}
        metadata["generateName"] = generated_name(name_of(pod), str(entry["name"]))
        body = {"metadata": metadata, "spec": template["spec"]["spec"]}
        claim = await self._kube.create(RESOURCE_CLAIMS, body, namespace=namespace, field_manager=MANAGER)
        self._made[uid_of(pod), entry["name"]] = name_of(claim)
        return name_of(claim)

    async def _note(self, pod: Object, made: Mapping[str, str]) -> None:
        known = {each["name"]: each for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
        known |= {entry: {"name": entry, "resourceClaimName": name} for entry, name in made.items()}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name_of(pod), "namespace": namespace_of(pod)},
            "status": {"resourceClaimStatuses": list(known.values())},
        }
        await self._kube.patch(
            PODS,
            name_of(pod),
            body,
            kind=Patch.APPLY,
            namespace=namespace_of(pod),
            subresource="status",
            field_manager=_STATUS_MANAGER,
            force=True,
        )

    async def _drop(self, pod: Object) -> None:
        """Nobody needs the claims of a pod that has ended."""
        for claim in list(self._claims.items()):
            if namespace_of(claim) == namespace_of(pod) and _owns(pod, claim) and not is_deleting(claim):
                try:
                    await self._kube.delete(RESOURCE_CLAIMS, name_of(claim), namespace=namespace_of(claim))
                except NotFound:
                    continue


def generated_name(pod: str, entry: str) -> str:
    """The beginning of a claim's name; where that is too long both parts give way, each by its share."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _LONGEST:
        return whole
    begin = pod[: len(pod) * _LONGEST // len(whole)]
    return f"{begin}-{entry[: len(entry) * _LONGEST // len(whole)]}"


def _metadata(pod: Object, template: Mapping[str, Any]) -> dict[str, Any]:
    given = template.get("metadata") or {}
    kept = {key: dict(given[key]) for key in ("annotations", "labels") if given.get(key)}
    return {**kept, "ownerReferences": [controller_reference(pod, PODS)]}


def _noted(pod: Object, entry: str) -> str | None:
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return next((each.get("resourceClaimName") for each in statuses if each["name"] == entry), None)


def _owns(pod: Object, claim: Object) -> bool:
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == uid_of(pod) for owner in owners)
