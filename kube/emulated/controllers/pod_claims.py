"""Makes the claims of pods' ephemeral volumes.

Source: pkg/controller/volume/ephemeral of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.brought_claims import brings_ephemeral_volumes
from mews.kube.api.errors import ApiError
from mews.kube.api.objects import Object, is_deleting, key_of, name_of, namespace_of
from mews.kube.api.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from mews.kube.api.volumes import not_made_for
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers, controller_reference
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop
from mews.kube.events import EventRecorder, pod_reference


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
        metadata = claim_metadata(pod, template)
        body = {"metadata": {**metadata, "name": name}, "spec": template["spec"]}
        await self._kube.create(PERSISTENT_VOLUME_CLAIMS, body, namespace=namespace_of(pod), field_manager=MANAGER)


def claim_metadata(pod: Object, template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a claim made from a template: its labels and annotations, owned by the pod."""
    given = template.get("metadata") or {}
    kept = {key: dict(given[key]) for key in ("annotations", "labels") if given.get(key)}
    return {**kept, "ownerReferences": [controller_reference(pod, PODS)]}
