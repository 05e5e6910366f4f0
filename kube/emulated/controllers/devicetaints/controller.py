"""Deletes the pods whose devices have a NoExecute taint that they do not tolerate, or no longer.

Taints come from ResourceSlices and, where they act, from DeviceTaintRules; a rule's status says how far its evictions
are. Source: pkg/controller/devicetainteviction/device_taint_eviction.go of Kubernetes 1.37, and of 1.34 where devices
are as there (``DeviceFeatures.tracks_rules``). Upstream's controller of 1.34 reports the first eviction alone
(deletePodHandler forgets for all how to); here each has its event.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, is_deleting, key_of, name_of, namespace_of, uid_of
from mews.kube.api.resource_claims import consumers_of
from mews.kube.api.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, taint_rules_of
from mews.kube.client.port import DeleteOptions, Patch, Preconditions
from mews.kube.component import Context
from mews.kube.emulated.controllers.devicetaints import policy
from mews.kube.emulated.controllers.devicetaints.policy import DeviceTaints, Eviction
from mews.kube.emulated.controllers.disrupted_pods import mark_disrupted
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.syncing import SyncLoop
from mews.kube.events import EventRecorder
from mews.kube.scheduling.devices.features import DeviceFeatures
from mews.kube.scheduling.devices.taint_rules import concern, with_rules

_MANAGER = "device-taint-eviction-controller"
"""The field manager of the rules' status."""
_REASON = "DeletionByDeviceTaintManager"
_MESSAGE = "Device Taint manager: deleting due to NoExecute taint"
_POD, _RULE = "pod:", "rule:"
_REMEMBERED = 500
"""Uids of evicted pods (upstream maxUIDCacheEntries)."""


class RecentUids:
    """The uids that were added or asked for last, at most ``most`` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._uids: dict[str, None] = {}

    def add(self, uid: str) -> None:
        """Remember a uid, in the place of the one that was of no use for longest."""
        self._uids.pop(uid, None)
        self._uids[uid] = None
        if len(self._uids) > self._most:
            del self._uids[next(iter(self._uids))]

    def __contains__(self, uid: str) -> bool:
        if uid not in self._uids:
            return False
        self.add(uid)
        return True


class _DoomedPod(Struct, frozen=True):
    """A pod that is to be deleted, and when."""

    name: str
    namespace: str
    uid: str
    eviction: Eviction


class DeviceTaintEviction:
    """Component: one for a cluster. ``events`` records as ``device-taint-eviction-controller``. ``devices``: what the
    release's gates turn on."""

    def __init__(
        self, context: Context, *, informers: Informers, events: EventRecorder, devices: DeviceFeatures
    ) -> None:
        self._context = context
        self._events = events
        self._pods, self._claims = informers.of(PODS), informers.of(RESOURCE_CLAIMS)
        self._slices = informers.of(RESOURCE_SLICES)
        self._devices = devices
        self._rules_resource = taint_rules_of(devices.taint_rules)
        self._rules = informers.of(self._rules_resource) if devices.taint_rules else None
        self._classes = informers.of(DEVICE_CLASSES) if devices.taint_rules and devices.tracks_rules else None
        self._taints = DeviceTaints()
        self._evictions: dict[str, Eviction] = {}
        """By key, of the claims that pods must not use any longer."""
        self._doomed: dict[str, _DoomedPod] = {}
        """By uid. What is not here any more by the time of its eviction stays."""
        self._evicted = RecentUids(_REMEMBERED)
        self._evicted_for: dict[str, int] = {}
        """Pods evicted since the start, by the keys of the rules."""
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in (self._pods, self._claims, self._slices, self._rules, self._classes):
            if informer is not None:
                await informer.synced()
        if self._classes is not None:
            self._classes.on_change(self._class_changed)
        if self._rules is not None:
            self._rules.on_change(self._rule_changed if self._classes is None else self._tracked_rule_changed)
        self._slices.on_change(self._slice_changed)
        self._claims.on_change(self._claim_changed)
        self._pods.on_change(self._pod_changed)
        await self._loop.run()

    # --------------------------------------------------------------------------------------------------------- changes

    def _rule_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and uid_of(old) == uid_of(new) and old["spec"] == new["spec"]:
            return
        if new is not None:  # so that its status is updated before any pod is evicted
            self._loop.add(_RULE + policy.rule_key(new))
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self._evicted_for.pop(policy.rule_key(old), None)
        if self._taints.set_rule(old, new):
            self._reassess(self._claims.items())

    def _tracked_rule_changed(self, old: Object | None, new: Object | None) -> None:
        """Its taint is put on slices, which change."""
        rules = [rule for rule in (old, new) if rule is not None]
        for each in list(self._slices.items()):
            if concern(rules, each):
                self._slice_changed(each, each)

    def _class_changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None:  # upstream's tracker misses the end of a class
            for each in list(self._slices.items()):
                self._slice_changed(each, each)

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and self._classes is not None and self._rules is not None:
            new = with_rules(new, list(self._rules.items()), self._classes.get)
        changed = self._taints.set_slice(old, new)
        if changed:
            self._reassess(claim for claim in self._claims.items() if policy.uses(claim, changed))

    def _reassess(self, claims: Iterable[Object]) -> None:
        for claim in claims:
            before = self._evictions.get(key_of(claim))
            after = self._assess(claim)
            # Upstream takes no eviction before and after for a change, so pods of untainted claims are seen to, too.
            # One that is being deleted for another claim is on the list again, and leaves it with an event.
            if after is None or after != before:
                self._claim_used(claim)

    def _assess(self, claim: Object) -> Eviction | None:
        eviction = self._taints.eviction_of(claim)
        if eviction is None:
            self._evictions.pop(key_of(claim), None)
        else:
            self._evictions[key_of(claim)] = eviction
        return eviction

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            assert old is not None
            self._evictions.pop(key_of(old), None)
        else:
            self._assess(new)
            self._claim_used(new)
        if old is not None and (new is None or consumers_of(old) != consumers_of(new)):
            self._claim_used(old)

    def _claim_used(self, claim: Object) -> None:
        """See to the pods that use the claim."""
        for consumer in consumers_of(claim):
            if consumer.get("resource") == "pods" and not consumer.get("apiGroup"):
                pod = self._pods.get(str(consumer["name"]), namespace_of(claim))
                if pod is not None and uid_of(pod) == consumer.get("uid"):
                    self._see_to(pod)
                elif self._devices.minor < 36:  # until then upstream left the rest unseen
                    return

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            assert old is not None
            self._doomed.pop(uid_of(old), None)
        elif old is None or policy.concerns_eviction(old, new):
            self._see_to(new)

    def _see_to(self, pod: Object) -> None:
        uid, eviction = uid_of(pod), self._eviction_of(pod)
        if eviction is None:
            doomed = self._doomed.pop(uid, None)
            if doomed is not None:
                self._report(doomed, "Cancelling deletion")
            return
        self._doomed[uid] = _DoomedPod(name_of(pod), namespace_of(pod), uid, eviction)
        wait_s = eviction.at_s - self._context.clock.now()
        if wait_s > 0:
            self._loop.add_after(_POD + uid, wait_s)
        else:
            self._loop.add(_POD + uid)
        self._update_later(eviction)

    def _eviction_of(self, pod: Object) -> Eviction | None:
        return policy.eviction_of_pod(
            pod,
            self._claims.get,
            lambda claim: self._evictions.get(key_of(claim)),
            extended=self._devices.minor >= 37,
        )

    def _update_later(self, eviction: Eviction) -> None:
        """More pods may be about to change, and caches to be late: the rules' status can wait."""
        for rule in sorted(eviction.rules):
            self._loop.add_after(_RULE + rule, policy.STATUS_PERIOD_S)

    async def _sync(self, key: str) -> None:
        if key.startswith(_POD):
            await self._sync_pod(key.removeprefix(_POD))
        else:
            await self._sync_rule(key.removeprefix(_RULE))

    # ------------------------------------------------------------------------------------------------------------ pods

    async def _sync_pod(self, uid: str) -> None:
        doomed = self._doomed.get(uid)
        if doomed is None or uid in self._evicted:
            return
        wait_s = doomed.eviction.at_s - self._context.clock.now()
        if wait_s > 0:
            self._loop.add_after(_POD + uid, wait_s)
            return
        is_done = await self._evict(doomed)
        self._doomed.pop(uid, None)
        if self._devices.tracks_rules:  # there a pod that is seen again is evicted again
            return
        self._evicted.add(uid)
        if is_done:
            for rule in doomed.eviction.rules:
                self._evicted_for[rule] = self._evicted_for.get(rule, 0) + 1
            self._update_later(doomed.eviction)

    async def _evict(self, doomed: _DoomedPod) -> bool:
        """Delete the pod. Returns whether it was there."""
        kube, name, namespace = self._context.kube, doomed.name, doomed.namespace
        try:
            pod = await kube.get(PODS, name, namespace=namespace)
            if uid_of(pod) != doomed.uid:
                return False
            if is_deleting(pod):
                return True
            self._report(doomed, "Marking for deletion")
            await mark_disrupted(self._context, pod, reason=_REASON, message=_MESSAGE)
            options = DeleteOptions(preconditions=Preconditions(uid=doomed.uid))
            await kube.delete(PODS, name, namespace=namespace, options=options)
        except NotFoundError:
            return False
        return True

    def _report(self, doomed: _DoomedPod, text: str) -> None:
        about = {"kind": "Pod", "namespace": doomed.namespace, "name": doomed.name}
        about |= {"uid": doomed.uid, "apiVersion": PODS.api_version}
        self._events.event(about, "Normal", "DeviceTaintManagerEviction", text)

    # ----------------------------------------------------------------------------------------------------------- rules

    async def _sync_rule(self, key: str) -> None:
        rule = None if self._rules is None else self._rules.get(key.partition("/")[0])
        if rule is None or policy.rule_key(rule) != key:
            return
        now_s = self._context.clock.now()
        wait_s = policy.due_in_s(rule, now_s)
        if wait_s > 0:
            self._loop.add_after(_RULE + key, wait_s)
            return
        condition = policy.rule_condition(rule, self._tally(rule))
        if policy.has_changed(rule, condition):
            resource = self._rules_resource
            applied = {"apiVersion": resource.api_version, "kind": resource.kind}
            await self._context.kube.patch(
                resource,
                name_of(rule),
                {**applied, **policy.status_of_rule(rule, condition, now_s)},
                kind=Patch.APPLY,
                subresource="status",
                field_manager=_MANAGER,
                force=True,
            )

    def _tally(self, rule: Object) -> policy.RuleTally:
        effect, evicted = policy.effect_of(rule), self._evicted_for.get(policy.rule_key(rule), 0)
        if effect == policy.EVICTS:
            pending, namespaces = policy.pending_pods(rule, self._pods.items(), self._eviction_of)
            return policy.RuleTally(pending, namespaces, evicted)
        if effect != "None":
            return policy.RuleTally(evicted=evicted)
        pretended = policy.as_if_evicting(rule)
        pending, namespaces = policy.pending_pods(
            rule,
            self._pods.items(),
            lambda pod: policy.eviction_of_pod(pod, self._claims.get, pretended.eviction_of),
        )
        allocated = policy.allocated_devices(rule, self._claims.items())
        return policy.RuleTally(pending, namespaces, evicted, self._taints.published(rule), allocated)
