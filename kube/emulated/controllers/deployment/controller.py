"""Rolls Deployments out: makes ReplicaSets and shifts pods from the old ones to the new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.errors import AlreadyExistsError, ApiError, NotFoundError
from mews.kube.api.objects import (
    Object,
    annotations_of,
    clone,
    is_deleting,
    is_terminal,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from mews.kube.api.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from mews.kube.api.selectors import match_expressions
from mews.kube.client.port import Patch
from mews.kube.component import Context
from mews.kube.emulated.controllers.conditions import Condition, find, put
from mews.kube.emulated.controllers.deployment import policy, progress
from mews.kube.emulated.controllers.owners import Informers, controller_of, controller_reference
from mews.kube.emulated.controllers.pod_control import is_terminating_namespace, owners_of_change
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, SyncLoop
from mews.kube.emulated.controllers.template_hash import template_hash
from mews.kube.events import EventRecorder, reference

_LONGEST_NAME = 253


class DeploymentController:
    """Component: one for a cluster. ``events`` records as ``deployment-controller``."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._context = context
        self._events = events
        self._deployments = informers.of(DEPLOYMENTS)
        self._sets = informers.owned(REPLICA_SETS)
        self._pods = informers.owned(PODS)
        self._expectations = Expectations()
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in (self._deployments, self._sets.informer, self._pods.informer):
            await informer.synced()
        self._deployments.on_change(self._loop.add_changed)
        self._sets.informer.on_change(self._set_changed)
        self._pods.informer.on_change(self._pod_changed)
        await self._loop.run()

    def _set_changed(self, old: Object | None, new: Object | None) -> None:
        for key in owners_of_change(old, new, DEPLOYMENTS.kind):
            self._loop.add(key)
        if new is not None and controller_of(new) is None:
            for deployment in self._deployments.items():
                if namespace_of(deployment) == namespace_of(new) and _selects(deployment, new):
                    self._loop.add(key_of(deployment))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        """A Recreate waits for the last old pod to go."""
        if new is not None or old is None:
            return
        for key in owners_of_change(old, None, REPLICA_SETS.kind):
            replica_set = self._sets.informer.at(key)
            for owner in owners_of_change(replica_set, None, DEPLOYMENTS.kind) if replica_set is not None else ():
                deployment = self._deployments.at(owner)
                if deployment is not None and not policy.is_rolling(deployment):
                    self._loop.add(owner)

    async def _sync(self, key: str) -> None:
        cached = self._deployments.at(key)
        if cached is None:
            self._expectations.forget(key)
            return
        if not self._expectations.met(key):
            return
        work = _Work(self, clone(cached), await self._claimed(cached))
        if is_deleting(cached):
            await work.take_stock()
        elif (conditions := progress.paused(cached, self._context.clock.now())) is not None:
            work.deployment["status"] = {**(cached.get("status") or {}), "conditions": conditions}
            await self.write_status(work.deployment)
        elif cached["spec"].get("paused") or await work.was_resized():
            await work.resize()
        elif policy.is_rolling(cached):
            await work.roll()
        else:
            await work.recreate()

    async def _claimed(self, deployment: Object) -> list[Object]:
        kept: list[Object] = []
        for replica_set in self._sets.of(uid_of(deployment)):
            if _selects(deployment, replica_set):
                kept.append(replica_set)
            elif not is_deleting(deployment):
                gone = {"$patch": "delete", "uid": uid_of(deployment)}
                await self._own(deployment, replica_set, gone)
        for replica_set in () if is_deleting(deployment) else self._sets.orphans(namespace_of(deployment)):
            if _selects(deployment, replica_set) and not is_deleting(replica_set):
                kept.append(await self._own(deployment, replica_set, controller_reference(deployment, DEPLOYMENTS)))
        return kept

    async def _own(self, deployment: Object, replica_set: Object, owner: Mapping[str, Any]) -> Object:
        body = {"metadata": {"uid": uid_of(replica_set), "ownerReferences": [dict(owner)]}}
        changed = await self._context.kube.patch(
            REPLICA_SETS, name_of(replica_set), body, kind=Patch.STRATEGIC, namespace=namespace_of(replica_set),
            field_manager=MANAGER,
        )  # fmt: skip
        self._expectations.wrote(key_of(deployment), self._sets.informer, changed)
        return changed

    # What the work on one Deployment asks for.

    def now(self) -> float:
        """Return the time now, in unix seconds."""
        return self._context.clock.now()

    def event(self, deployment: Object, kind: str, reason: str, text: str) -> None:
        """Tell of something about a Deployment."""
        about = reference({**deployment, "kind": DEPLOYMENTS.kind, "apiVersion": DEPLOYMENTS.api_version})
        self._events.event(about, kind, reason, text)

    async def write_status(self, deployment: Object) -> None:
        """PUT of the status; the object's new version counts from then on."""
        written = await self._context.kube.replace(DEPLOYMENTS, deployment, subresource="status", field_manager=MANAGER)
        deployment["metadata"] = clone(written["metadata"])
        self._expectations.wrote(key_of(deployment), self._deployments, written)

    async def write_set(self, deployment: Object, replica_set: Object) -> Object:
        """Write a ReplicaSet (PUT)."""
        written = await self._context.kube.replace(REPLICA_SETS, replica_set, field_manager=MANAGER)
        self._expectations.wrote(key_of(deployment), self._sets.informer, written)
        return written

    async def create_set(self, deployment: Object, replica_set: Mapping[str, Any]) -> Object:
        """Create a ReplicaSet (POST)."""
        made = await self._context.kube.create(
            REPLICA_SETS, replica_set, namespace=namespace_of(deployment), field_manager=MANAGER
        )
        self._expectations.wrote(key_of(deployment), self._sets.informer, made)
        return made

    async def find_set(self, namespace: str, name: str) -> Object:
        """Return a ReplicaSet as the server has it."""
        return await self._context.kube.get(REPLICA_SETS, name, namespace=namespace)

    async def delete_set(self, deployment: Object, replica_set: Object) -> None:
        """Delete a ReplicaSet (DELETE)."""
        self._expectations.deleted(key_of(deployment), self._sets.informer, replica_set)
        try:
            await self._context.kube.delete(REPLICA_SETS, name_of(replica_set), namespace=namespace_of(replica_set))
        except NotFoundError:
            return

    def recheck(self, deployment: Object, delay_s: float) -> None:
        """Look at it again later."""
        self._loop.add_after(key_of(deployment), delay_s)

    def has_old_pods(self, sets: Sequence[Object]) -> bool:
        """Return whether pods of those ReplicaSets have not ended yet."""
        if any((rs.get("status") or {}).get("replicas") for rs in sets):
            return True
        return any(not is_terminal(pod) for rs in sets for pod in self._pods.of(uid_of(rs)))


class _Work:
    """One pass over one Deployment. ``deployment`` is the pass's own copy."""

    def __init__(self, controller: DeploymentController, deployment: Object, sets: Sequence[Object]) -> None:
        self.deployment = deployment
        self._controller = controller
        self._new, self._old = policy.split(deployment, sets)

    async def take_stock(self) -> None:
        """Only the status, of a Deployment that is being deleted."""
        await self._prepare_new(create=False)
        await self._count()

    async def was_resized(self) -> bool:
        """Return whether the Deployment's number of replicas was changed."""
        await self._prepare_new(create=False)
        return policy.is_resized(self.deployment, self._sets())

    async def resize(self) -> None:
        """Size the ReplicaSets anew, as when it is paused."""
        await self._prepare_new(create=False)
        busy = len(policy.active(self._sets())) > 1
        for replica_set, size in policy.resized(self.deployment, self._new, self._old):
            await self._scale(replica_set, size, always=busy)
        if self.deployment["spec"].get("paused"):
            await self._clean_up()
        await self._count()

    async def roll(self) -> None:
        """One step of a rolling update."""
        await self._prepare_new(create=True)
        assert self._new is not None
        size = policy.replicas_of(self._new)
        wanted = policy.replicas_of(self.deployment)
        if size != wanted:
            most = policy.new_replicas(self.deployment, self._sets(), self._new)
            if await self._scale(self._new, wanted if size > wanted else most):
                return await self._report()
        if await self._shrink_old():
            return await self._report()
        if progress.is_complete(self.deployment, self.deployment.get("status") or {}):
            await self._clean_up()
        return await self._report()

    async def _shrink_old(self) -> bool:
        assert self._new is not None
        old = policy.active(self._old)
        most = policy.healthy_scale_down(self.deployment, old, self._new)
        if not old or most <= 0:
            return False
        shrunk = False
        for replica_set, size in policy.unhealthy_sizes(old, most):
            shrunk |= await self._scale(replica_set, size)
        for replica_set, size in policy.available_sizes(self.deployment, policy.active(self._old), self._new):
            shrunk |= await self._scale(replica_set, size)
        return shrunk

    async def recreate(self) -> None:
        """One step of an update that ends all old pods before it makes new ones."""
        await self._prepare_new(create=False)
        scaled = [await self._scale(replica_set, 0) for replica_set in policy.active(self._old)]
        if any(scaled) or self._controller.has_old_pods(self._old):
            return await self._report()
        if self._new is None:
            await self._prepare_new(create=True)
        assert self._new is not None
        await self._scale(self._new, policy.replicas_of(self.deployment))
        if progress.is_complete(self.deployment, self.deployment.get("status") or {}):
            await self._clean_up()
        return await self._report()

    def _sets(self) -> list[Object]:
        return [*self._old, *([self._new] if self._new is not None else [])]

    # The new ReplicaSet

    async def _prepare_new(self, *, create: bool) -> None:
        revision = policy.next_revision(self._old)
        if self._new is not None:
            await self._bring_up_to_date(self._new, revision)
        elif create:
            await self._create_new(revision)

    async def _bring_up_to_date(self, new: Object, revision: int) -> None:
        annotations = policy.new_annotations(self.deployment, annotations_of(new), revision)
        span_s = self.deployment["spec"].get("minReadySeconds", 0)
        if annotations != annotations_of(new) or new["spec"].get("minReadySeconds", 0) != span_s:
            changed = {**new, "metadata": {**new["metadata"], "annotations": annotations}}
            changed["spec"] = {**new["spec"], "minReadySeconds": span_s}
            self._new = await self._controller.write_set(self.deployment, changed)
            return
        found = None
        if find(self._conditions(), progress.PROGRESSING) is None:
            found = self._progressing("True", "FoundNewReplicaSet", f'Found new replica set "{name_of(new)}"')
        await self._report_progress(annotations[policy.REVISION], found)

    async def _create_new(self, revision: int) -> None:
        deployment = self.deployment
        body = _replica_set(deployment, revision)
        body["spec"]["replicas"] = 0
        size = policy.new_replicas(deployment, [*self._old, body], body)
        body["spec"]["replicas"] = size
        name = name_of(body)
        try:
            self._new = await self._controller.create_set(deployment, body)
        except AlreadyExistsError:
            self._new = await self._known(name)
            await self._report_progress(str(revision), None)
            return
        except ApiError as error:
            if not is_terminating_namespace(error):
                await self._report_failure(f'Failed to create new replica set "{name}": {error.message}')
            raise
        if size > 0:
            text = f"Scaled up replica set {name} from 0 to {size}"
            self._controller.event(deployment, "Normal", "ScalingReplicaSet", text)
        made = self._progressing("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        await self._report_progress(str(revision), made)

    async def _known(self, name: str) -> Object:
        """Return the ReplicaSet of that name if it is ours; else the name is taken, and the next pass tries another."""
        found = await self._controller.find_set(namespace_of(self.deployment), name)
        owner = controller_of(found) or {}
        if owner.get("uid") == uid_of(self.deployment) and policy.split(self.deployment, [found])[0] is not None:
            return found
        status = self.deployment.get("status") or {}
        self.deployment["status"] = {**status, "collisionCount": int(status.get("collisionCount") or 0) + 1}
        await self._controller.write_status(self.deployment)
        raise AlreadyExistsError(f'replicasets.apps "{name}" already exists')

    async def _report_failure(self, text: str) -> None:
        failure = self._progressing("False", "ReplicaSetCreateError", text)
        if failure is not None:
            self._put(failure)
            await self._controller.write_status(self.deployment)
        self._controller.event(self.deployment, "Warning", "ReplicaSetCreateError", text)

    def _conditions(self) -> Sequence[Condition]:
        return (self.deployment.get("status") or {}).get("conditions") or ()

    def _progressing(self, status: str, reason: str, text: str) -> Condition | None:
        if policy.deadline_s(self.deployment) is None:
            return None
        return progress.condition(progress.PROGRESSING, status, reason, text, now=self._controller.now())

    def _put(self, condition: Condition) -> None:
        status = self.deployment.get("status") or {}
        self.deployment["status"] = {**status, "conditions": put(self._conditions(), condition)}

    async def _report_progress(self, revision: str, condition: Condition | None) -> None:
        """Note the revision, and a condition, on the Deployment, unless it is there."""
        annotations = annotations_of(self.deployment)
        if condition is not None:
            self._put(condition)
        elif annotations.get(policy.REVISION) == revision:
            return
        self.deployment["metadata"]["annotations"] = {**annotations, policy.REVISION: revision}
        await self._controller.write_status(self.deployment)

    # Sizes and status

    async def _scale(self, replica_set: Object, size: int, *, always: bool = False) -> bool:
        """Return whether its size was changed. ``always``: what it remembers of the Deployment's size is written
        anyway."""
        before, sizes = policy.replicas_of(replica_set), policy.size_annotations(self.deployment)
        annotations = {**annotations_of(replica_set), **sizes}
        if size == before and (not always or annotations == annotations_of(replica_set)):
            return False
        changed = {**replica_set, "metadata": {**replica_set["metadata"], "annotations": annotations}}
        changed["spec"] = {**replica_set["spec"], "replicas": size}
        written = await self._controller.write_set(self.deployment, changed)
        self._remember(written)
        if size == before:
            return False
        text = f"Scaled {'up' if before < size else 'down'} replica set {name_of(written)} from {before} to {size}"
        self._controller.event(self.deployment, "Normal", "ScalingReplicaSet", text)
        return True

    def _remember(self, written: Object) -> None:
        if self._new is not None and uid_of(self._new) == uid_of(written):
            self._new = written
        self._old = [written if uid_of(rs) == uid_of(written) else rs for rs in self._old]

    async def _clean_up(self) -> None:
        for replica_set in policy.to_clean_up(self.deployment, self._old):
            await self._controller.delete_set(self.deployment, replica_set)

    async def _count(self) -> None:
        await self._write(progress.counts(self.deployment, self._new, self._old, self._controller.now()))

    async def _report(self) -> None:
        status = progress.rolled(self.deployment, self._new, self._old, self._controller.now())
        if not await self._write(status):
            delay_s = progress.recheck_s(self.deployment, status, self._controller.now())
            if delay_s is not None:
                self._controller.recheck(self.deployment, delay_s)

    async def _write(self, status: Mapping[str, Any]) -> bool:
        if status == (self.deployment.get("status") or {}):
            return False
        self.deployment["status"] = dict(status)
        await self._controller.write_status(self.deployment)
        return True


def _selects(deployment: Object, replica_set: Object) -> bool:
    return match_expressions(deployment["spec"].get("selector") or {}, labels_of(replica_set))


def _replica_set(deployment: Object, revision: int) -> dict[str, Any]:
    """Return the new ReplicaSet, without its size."""
    spec, status = deployment["spec"], deployment.get("status") or {}
    code = template_hash(spec["template"], status.get("collisionCount"))
    template = clone(spec["template"])
    metadata = template.setdefault("metadata", {})
    labels = metadata["labels"] = {**(metadata.get("labels") or {}), policy.HASH_LABEL: code}
    selector = clone(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), policy.HASH_LABEL: code}
    annotations = policy.new_annotations(deployment, {}, revision) | policy.size_annotations(deployment)
    made: dict[str, Any] = {"selector": selector, "template": template}
    if spec.get("minReadySeconds"):
        made["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "metadata": {
            "name": f"{name_of(deployment)[: _LONGEST_NAME - 1 - len(code)]}-{code}",
            "namespace": namespace_of(deployment),
            "labels": dict(labels),
            "annotations": annotations,
            "ownerReferences": [controller_reference(deployment, DEPLOYMENTS)],
        },
        "spec": made,
    }
