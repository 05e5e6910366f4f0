"""The life of resource claims besides their allocation: made from templates, reserved for pods that were bound past the
scheduler, given up and deleted when their pods are done.

Source: pkg/controller/resourceclaim/controller.go of Kubernetes 1.34. Nothing is allocated here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import ApiError, NotFoundError
from mews.kube.api.objects import Object, is_deleting, is_terminal, key_of, name_of, namespace_of, node_name_of, uid_of
from mews.kube.api.resource_claims import (
    DELETE_PROTECTION,
    ClaimNotMadeError,
    allocation_of,
    can_be_reserved,
    claim_name,
    consumers_of,
    is_done,
    is_generated,
    is_reserved_for,
    known_claim_names,
    not_made_for,
    owns,
    uses_claims,
)
from mews.kube.api.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from mews.kube.client.port import Patch
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers, controller_of
from mews.kube.emulated.controllers.pod_claims import claim_metadata
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop
from mews.kube.events import EventRecorder, pod_reference

_OF_ENTRY = "resource.kubernetes.io/pod-claim-name"
_STATUS_MANAGER = "ResourceClaimController"
_LONGEST = 57
"""Of a name that the API server lengthens by a hyphen and five characters."""
_POD, _CLAIM = "pod:", "claim:"
_REMEMBERED = 500
"""Uids of deleted pods that need not be looked up (upstream maxUIDCacheEntries)."""


class ResourceClaims:
    """Component: one queue of pods and claims."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._kube = context.kube
        self._events = events
        self._pods = informers.of(PODS)
        self._claims, self._templates = informers.of(RESOURCE_CLAIMS), informers.of(RESOURCE_CLAIM_TEMPLATES)
        self._owned = informers.owned(RESOURCE_CLAIMS)
        self._users: dict[str, dict[str, None]] = {}
        """Claim's key -> keys of the pods that name it."""
        self._made: dict[tuple[str, str], Object] = {}
        """(pod's uid, entry) -> the claim that was made, until the cache has it."""
        self._gone: dict[str, None] = {}
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in (self._pods, self._claims, self._templates):
            await informer.synced()
        self._pods.on_change(self._pod_changed)
        self._claims.on_change(self._claim_changed)
        await self._loop.run()

    # --------------------------------------------------------------------------------------------------------- changes

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        pod = new or old
        if pod is None or not (uses_claims(pod) or (old is not None and uses_claims(old))):
            return
        if old is not None:
            for key in _claim_keys(old):
                users = self._users.get(key, {})
                users.pop(key_of(old), None)
                if not users:
                    self._users.pop(key, None)
        if new is not None:
            for key in _claim_keys(new):
                self._users.setdefault(key, {})[key_of(new)] = None
        else:
            self._forget(pod)
        if new is None or is_done(new):
            for key in _claim_keys(pod):
                self._loop.add(f"{_CLAIM}{key}")
        if new is not None and self._has_work(new):
            self._loop.add(f"{_POD}{key_of(new)}")

    def _forget(self, pod: Object) -> None:
        self._gone[uid_of(pod)] = None
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]
        for known in [known for known in self._made if known[0] == uid_of(pod)]:
            del self._made[known]

    def _has_work(self, pod: Object) -> bool:
        """Return whether a claim has to be made or reserved for the pod; upstream's cache of what it made keeps it from
        making claims anew for pods that have ended."""
        if is_deleting(pod) or is_terminal(pod):
            return False
        for entry in pod["spec"].get("resourceClaims") or ():
            try:
                name = claim_name(pod, entry)
            except ClaimNotMadeError:
                return True
            claim = self._claims.get(name, namespace_of(pod)) if name is not None else None
            if name is None or claim is None:
                return name is not None and is_generated(entry)
            if is_generated(entry) and not_made_for(pod, claim):
                return False
            if node_name_of(pod) and _is_to_reserve(pod, claim):
                return True
        return False

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        claim = new or old
        assert claim is not None
        if new is not None:
            self._loop.add(f"{_CLAIM}{key_of(new)}")
        for key in list(self._users.get(key_of(claim), ())):
            pod = self._pods.at(key)
            if pod is not None:
                self._pod_changed(pod, pod)

    async def _sync(self, key: str) -> None:
        if key.startswith(_POD):
            await self._sync_pod(key.removeprefix(_POD))
        else:
            await self._sync_claim(key.removeprefix(_CLAIM))

    # ------------------------------------------------------------------------------------------------------------ pods

    async def _sync_pod(self, key: str) -> None:
        pod = self._pods.at(key)
        if pod is None or is_deleting(pod) or is_terminal(pod):
            return
        made: dict[str, str] = {}
        for entry in pod["spec"].get("resourceClaims") or ():
            try:
                await self._claim_for(pod, entry, made)
            except ApiError as failed:
                text = f"PodResourceClaim {entry['name']}: {failed}"
                self._events.event(pod_reference(pod), "Warning", "FailedResourceClaimCreation", text)
                raise
        if made:
            await self._note(pod, made)
        if node_name_of(pod):
            await self._reserve(pod)

    async def _claim_for(self, pod: Object, entry: Mapping[str, Any], made: dict[str, str]) -> None:
        """Find or make the claim of an entry; ``made`` is given its name where the pod's status lacks it."""
        try:
            noted = claim_name(pod, entry)
        except ClaimNotMadeError:
            noted = ""
        if noted is None or not is_generated(entry):
            return
        known = self._claims.get(noted, namespace_of(pod)) if noted else None
        if known is not None and owns(uid_of(pod), known):
            return
        claim = self._orphan(pod, str(entry["name"])) or await self._make(pod, entry)
        made[entry["name"]] = name_of(claim)

    def _orphan(self, pod: Object, entry: str) -> Object | None:
        """Return the claim that was made for the entry before, which the pod's status does not name."""
        for claim in self._owned.of(uid_of(pod)):
            if (claim["metadata"].get("annotations") or {}).get(_OF_ENTRY) == entry:
                return claim
        made = self._made.get((uid_of(pod), entry))
        return made if made is not None and self._claims.version < int(made["metadata"]["resourceVersion"]) else None

    async def _make(self, pod: Object, entry: Mapping[str, Any]) -> Object:
        wanted, namespace = str(entry["resourceClaimTemplateName"]), namespace_of(pod)
        template = self._templates.get(wanted, namespace)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{wanted}" not found'
            raise NotFoundError(f'resource claim template "{wanted}": {missing}')
        metadata = claim_metadata(pod, template["spec"])
        metadata["annotations"] = {**metadata.get("annotations", {}), _OF_ENTRY: entry["name"]}
        metadata["generateName"] = generated_name(name_of(pod), str(entry["name"]))
        body = {"metadata": metadata, "spec": template["spec"]["spec"]}
        try:
            claim = await self._kube.create(RESOURCE_CLAIMS, body, namespace=namespace, field_manager=MANAGER)
        except ApiError as failed:  # upstream names the claim, which has no name yet
            raise ApiError(f"create ResourceClaim : {failed}", code=failed.code, reason=failed.reason) from failed
        self._made[uid_of(pod), entry["name"]] = claim
        return claim

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

    async def _reserve(self, pod: Object) -> None:
        """Reserve allocated claims for a pod that was bound past the scheduler."""
        for entry in pod["spec"].get("resourceClaims") or ():
            try:
                name = claim_name(pod, entry)
            except ClaimNotMadeError:
                return
            if name is None:
                continue
            claim = self._claims.get(name, namespace_of(pod))
            if claim is None or (is_generated(entry) and not_made_for(pod, claim)):
                return
            if _is_to_reserve(pod, claim):
                entry_of_pod = {"resource": "pods", "name": name_of(pod), "uid": uid_of(pod)}
                reserved = {"reservedFor": [*consumers_of(claim), entry_of_pod]}
                await self._write_status({**claim, "status": {**claim["status"], **reserved}})

    # ---------------------------------------------------------------------------------------------------------- claims

    async def _sync_claim(self, key: str) -> None:
        claim = self._claims.at(key)
        if claim is None:
            return
        known = consumers_of(claim)
        valid = [entry for entry in known if await self._is_valid(claim, entry)]
        protected = DELETE_PROTECTION in (claim["metadata"].get("finalizers") or ())
        if len(valid) < len(known):
            status = {**claim["status"], "reservedFor": valid}
            if not valid:
                del status["reservedFor"]
                if protected:
                    status.pop("allocation", None)
            written = await self._write_status({**claim, "status": status})
            if allocation_of(written) is None:
                await self._release(written)
        elif protected and is_deleting(claim) and not valid:
            unallocated = claim
            if allocation_of(claim) is not None:
                status = {name: value for name, value in claim["status"].items() if name != "allocation"}
                unallocated = await self._write_status({**claim, "status": status})
            await self._release(unallocated)
        if not valid:
            await self._delete_unneeded(claim)

    async def _is_valid(self, claim: Object, entry: Mapping[str, Any]) -> bool:
        """Return whether the consumer exists and may run. One that the cache lacks is looked up: it may be too new."""
        if entry.get("apiGroup") or entry.get("resource") != "pods":
            raise ApiError(f"unsupported ReservedFor entry: {dict(entry)}")
        if entry["uid"] in self._gone:
            return False
        pod = self._pods.get(entry["name"], namespace_of(claim))
        if pod is None:
            try:
                found = await self._kube.get(PODS, entry["name"], namespace=namespace_of(claim))
            except NotFoundError:
                return False
            return uid_of(found) == str(entry["uid"])
        return uid_of(pod) == str(entry["uid"]) and not is_done(pod)

    async def _release(self, claim: Object) -> None:
        """Take the finalizer away."""
        finalizers = claim["metadata"].get("finalizers") or ()
        if DELETE_PROTECTION in finalizers:
            left = [each for each in finalizers if each != DELETE_PROTECTION]
            changed = {**claim, "metadata": {**claim["metadata"], "finalizers": left}}
            await self._kube.replace(RESOURCE_CLAIMS, changed, field_manager=MANAGER)

    async def _delete_unneeded(self, claim: Object) -> None:
        """Delete a generated claim whose pod was replaced or will not run; that of a pod that is gone is garbage."""
        owner = controller_of(claim)
        if owner is None or owner.get("kind") != "Pod" or owner.get("apiVersion") != "v1":
            return
        pod = self._pods.get(str(owner["name"]), namespace_of(claim))
        if pod is None or (uid_of(pod) == owner["uid"] and not is_done(pod)):
            return
        try:
            await self._kube.delete(RESOURCE_CLAIMS, name_of(claim), namespace=namespace_of(claim))
        except NotFoundError:
            return

    async def _write_status(self, claim: Object) -> Object:
        return await self._kube.replace(RESOURCE_CLAIMS, claim, subresource="status", field_manager=MANAGER)


def generated_name(pod: str, entry: str) -> str:
    """Return the beginning of a claim's name; where that is too long both parts give way, each by its share."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _LONGEST:
        return whole
    begin = pod[: len(pod) * _LONGEST // len(whole)]
    return f"{begin}-{entry[: len(entry) * _LONGEST // len(whole)]}"


def _claim_keys(pod: Object) -> list[str]:
    return [f"{namespace_of(pod)}/{name}" for name in known_claim_names(pod)]


def _is_to_reserve(pod: Object, claim: Object) -> bool:
    return allocation_of(claim) is not None and not is_reserved_for(claim, uid_of(pod)) and can_be_reserved(claim)
