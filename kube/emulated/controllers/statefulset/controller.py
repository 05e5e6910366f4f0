"""Keeps the pods of each StatefulSet, one after the other. The claims of a pod are made before it, and stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mews.kube.api.errors import AlreadyExistsError, ApiError, NotFoundError
from mews.kube.api.objects import Object, is_deleting, key_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.pod_control import PodControl, is_terminating_namespace, owners_of_change
from mews.kube.emulated.controllers.revisions import Revisions, surplus
from mews.kube.emulated.controllers.statefulset import policy
from mews.kube.emulated.controllers.statefulset.claims import claims, with_claims
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, SyncLoop
from mews.kube.events import EventRecorder


class StatefulSetController:
    """Component: one for a cluster. ``events`` records as ``statefulset-controller``."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._context = context
        self._events = events
        self._sets = informers.of(STATEFUL_SETS)
        self._pods = informers.owned(PODS)
        self._revisions = informers.owned(CONTROLLER_REVISIONS)
        self._expectations = Expectations()
        self._history = Revisions(context.kube, owned=self._revisions, expectations=self._expectations)
        self._control = PodControl(
            context, events, resource=STATEFUL_SETS, pods=self._pods, expectations=self._expectations
        )
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in (self._sets, self._pods.informer, self._revisions.informer):
            await informer.synced()
        self._sets.on_change(self._loop.add_changed)
        for owned in (self._pods, self._revisions):
            owned.informer.on_change(self._owned_changed)
        await self._loop.run()

    def _owned_changed(self, old: Object | None, new: Object | None) -> None:
        for key in owners_of_change(old, new, STATEFUL_SETS.kind):
            self._loop.add(key)

    async def _sync(self, key: str) -> None:
        stateful_set = self._sets.at(key)
        if stateful_set is None:
            self._expectations.forget(key)
            return
        if not self._expectations.met(key):
            return
        revisions = list(self._revisions.of(uid_of(stateful_set)))
        pods = await self._control.claim(stateful_set)
        update = await self._updated(stateful_set, revisions)
        named = (stateful_set.get("status") or {}).get("currentRevision")
        current = next((found for found in revisions if name_of(found) == named), update)
        now = self._context.clock.now()
        failure: ApiError | None = None
        made: list[Object] = []
        if not is_deleting(stateful_set):
            step = policy.step(stateful_set, pods, update, now)
            try:
                for ordinal in step.create:
                    source = policy.source(stateful_set, ordinal, current=current, update=update)
                    made.append(await self._create(stateful_set, ordinal, source))
                for pod in step.delete:
                    await self._delete(stateful_set, pod)
            except ApiError as error:
                failure = None if is_terminating_namespace(error) else error
            pods = [*pods, *made]
            await self._clean_up(stateful_set, revisions, pods, (current, update))
        await self._write_status(
            stateful_set, policy.status(stateful_set, pods, current=current, update=update, now=now)
        )
        if policy.min_ready_s(stateful_set):
            self._loop.add_after(key, policy.min_ready_s(stateful_set))
        if failure is not None:
            raise failure

    async def _updated(self, stateful_set: Object, revisions: Sequence[Object]) -> Object:
        status = stateful_set.get("status") or {}
        collisions = int(status.get("collisionCount") or 0)
        return await self._history.newest(
            stateful_set,
            revisions,
            make=lambda: policy.revision(stateful_set, revisions, collisions),
            collided=lambda: self._write_status(
                stateful_set, {"replicas": 0, **status, "collisionCount": collisions + 1}
            ),
        )

    async def _clean_up(
        self, stateful_set: Object, revisions: Sequence[Object], pods: Sequence[Object], kept: Sequence[Object]
    ) -> None:
        live = {name_of(found) for found in kept}
        idle = [r for r in revisions if name_of(r) not in live and not any(policy.is_of(pod, r) for pod in pods)]
        await self._history.drop(surplus(stateful_set, idle))

    async def _create(self, stateful_set: Object, ordinal: int, source: Object) -> Object:
        body = with_claims(policy.pod(stateful_set, ordinal, source), stateful_set, ordinal)
        name = body["metadata"]["name"]
        await self._create_claims(stateful_set, ordinal, name)
        try:
            made = await self._context.kube.create(
                PODS, body, namespace=namespace_of(stateful_set), field_manager=MANAGER
            )
        except ApiError as error:
            if not is_terminating_namespace(error):
                self._emit(stateful_set, "create", name, error.message)
            raise
        self._expectations.wrote(key_of(stateful_set), self._pods.informer, made)
        self._emit(stateful_set, "create", name)
        return made

    async def _create_claims(self, stateful_set: Object, ordinal: int, pod: str) -> None:
        place, about = namespace_of(stateful_set), self._control.about(stateful_set)
        for claim in claims(stateful_set, ordinal):
            name = claim["metadata"]["name"]
            # Looked for first: what is there already is no matter of quotas, which a second one could be above.
            found = await self._find_claim(name, place)
            if found is not None and is_deleting(found):
                raise ApiError(f"pvc {name} is being deleted")  # its pod would hold it for ever: not before it is gone
            if found is not None:
                continue
            what = f"Claim {name} Pod {pod} in StatefulSet {name_of(stateful_set)}"
            try:
                await self._context.kube.create(PERSISTENT_VOLUME_CLAIMS, claim, namespace=place, field_manager=MANAGER)
            except AlreadyExistsError:
                continue
            except ApiError as error:
                text = f"create {what} failed error: {error.message}"
                self._events.event(about, "Warning", "FailedCreate", text)
                raise
            self._events.event(about, "Normal", "SuccessfulCreate", f"create {what} success")

    async def _find_claim(self, name: str, namespace: str) -> Object | None:
        try:
            return await self._context.kube.get(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace)
        except NotFoundError:
            return None

    async def _delete(self, stateful_set: Object, pod: Object) -> None:
        self._expectations.deleted(key_of(stateful_set), self._pods.informer, pod)
        try:
            await self._context.kube.delete(PODS, name_of(pod), namespace=namespace_of(pod))
        except NotFoundError:
            return
        self._emit(stateful_set, "delete", name_of(pod))

    def _emit(self, stateful_set: Object, verb: str, pod: str, failure: str = "") -> None:
        text = f"{verb} Pod {pod} in StatefulSet {name_of(stateful_set)}"
        about = self._control.about(stateful_set)
        if failure:
            self._events.event(about, "Warning", f"Failed{verb.title()}", f"{text} failed error: {failure}")
        else:
            self._events.event(about, "Normal", f"Successful{verb.title()}", f"{text} successful")

    async def _write_status(self, stateful_set: Object, status: Mapping[str, object]) -> None:
        if status == (stateful_set.get("status") or {}):
            return
        body = {**stateful_set, "status": dict(status)}
        try:
            written = await self._context.kube.replace(STATEFUL_SETS, body, subresource="status", field_manager=MANAGER)
        except NotFoundError:
            return
        self._expectations.wrote(key_of(stateful_set), self._sets, written)
