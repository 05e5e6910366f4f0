"""Scales workloads by what their pods use (pkg/controller/podautoscaler/horizontal.go, 1.34)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from msgspec import Struct

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, key_of, labels_of, name_of, namespace_of
from mews.kube.api.resources import AUTOSCALERS, PODS
from mews.kube.api.selectors import label_selector
from mews.kube.clock import later
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.podautoscaler.behavior import History, begun, rescaled, settle
from mews.kube.emulated.controllers.podautoscaler.conditions import ABLE, ACTIVE, LIMITED
from mews.kube.emulated.controllers.podautoscaler.draft import StatusDraft, bounds_of, tolerances_of
from mews.kube.emulated.controllers.podautoscaler.measures import MetricsReader
from mews.kube.emulated.controllers.podautoscaler.metric_specs import Measured, MetricFailure, measured
from mews.kube.emulated.controllers.podautoscaler.replicas import Circumstances, any_warms_up
from mews.kube.emulated.controllers.podautoscaler.selecting import Selectors
from mews.kube.emulated.controllers.podautoscaler.targets import ScaleTargets, TargetError
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop
from mews.kube.events import EventRecorder, reference

SYNC_S = 15.0
"""``--horizontal-pod-autoscaler-sync-period``: an autoscaler is looked at so long after it came, and then as often."""
_NO_METRIC: dict[str, Any] = {"type": ""}
"""The status of a metric that could not be read: upstream's list has an empty entry for it."""


class _Desired(Struct, frozen=True):
    """The replicas to set, and why; the metrics that say so. ``passing``: time alone may come to another number."""

    replicas: int
    reason: str = ""
    metrics: Sequence[dict[str, Any]] = ()
    passing: bool = False


class _Work(Struct, frozen=True):
    """One autoscaler while it is looked at."""

    autoscaler: Object
    key: str
    draft: StatusDraft
    now: float


class _NothingFoundError(Exception):
    """No number of replicas follows from the metrics; ``metrics`` is their status all the same."""

    def __init__(self, text: str, metrics: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(text)
        self.metrics = metrics


class PodAutoscaler:
    """Component: one for a cluster. ``events`` records as ``horizontal-pod-autoscaler``."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._context = context
        self._events = events
        self._autoscalers = informers.of(AUTOSCALERS)
        self._pods = informers.of(PODS)
        self._targets = ScaleTargets(context.kube)
        self._metrics = MetricsReader(context.kube)
        self._selectors = Selectors()
        self._histories: dict[str, History] = {}
        self._scheduled: set[str] = set()
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._autoscalers.synced()
        await self._pods.synced()
        self._autoscalers.on_change(self._changed)
        await self._loop.run()

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._selectors.forget(key_of(old))
            return
        key = key_of(new)
        self._selectors.register(key)
        if key not in self._scheduled:  # a change is looked at when its turn comes
            self._scheduled.add(key)
            self._loop.add_after(key, SYNC_S)

    async def _sync(self, key: str) -> None:
        autoscaler = self._autoscalers.at(key)
        if autoscaler is None:
            self._scheduled.discard(key)
            self._histories.pop(key, None)
            return
        now = self._context.clock.now()
        work = _Work(autoscaler, key, StatusDraft(autoscaler, now), now)
        passing = await self._reconcile(work)
        written = await self._write(work)
        if passing or written:
            self._loop.add_after(key, SYNC_S)
        else:  # it is at rest: a virtual cluster in which nothing else happens does not wait for it
            later(SYNC_S, lambda: self._loop.add(key))

    async def _reconcile(self, work: _Work) -> bool:
        """Scale the target if need be. Returns whether time alone may come to something else."""
        autoscaler, draft = work.autoscaler, work.draft
        try:
            target, scale = await self._targets.find(autoscaler["spec"]["scaleTargetRef"], namespace_of(autoscaler))
        except TargetError as error:
            self._warn(work, "FailedGetScale", str(error))
            text = f"the HPA controller was unable to get the target's current scale: {error}"
            draft.put(ABLE, False, "FailedGetScale", text)
            return False
        draft.put(ABLE, True, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
        current = int((scale.get("spec") or {}).get("replicas", 0))
        self._histories[work.key] = begun(self._histories.get(work.key, History()), current, work.now)
        try:
            desired = await self._desired(work, scale, current)
        except _NothingFoundError as error:
            draft.fill(current, None, error.metrics, rescaled=False)
            self._warn(work, "FailedComputeMetricsReplicas", str(error))
            return False
        if desired.replicas == current:
            draft.fill(current, current, desired.metrics, rescaled=False)
            return desired.passing
        try:
            await self._targets.set(target, scale, desired.replicas, namespace_of(autoscaler))
        except (ApiError, UnavailableError) as error:
            why = error.message if isinstance(error, ApiError) else str(error)
            self._warn(work, "FailedRescale", f"New size: {desired.replicas}; reason: {desired.reason}; error: {why}")
            text = f"the HPA controller was unable to update the target scale: {why}"
            draft.put(ABLE, False, "FailedUpdateScale", text)
            draft.fill(current, None, desired.metrics, rescaled=False)
            return True
        text = f"the HPA controller was able to update the target scale to {desired.replicas}"
        draft.put(ABLE, True, "SucceededRescale", text)
        self._emit(work, "Normal", "SuccessfulRescale", f"New size: {desired.replicas}; reason: {desired.reason}")
        self._histories[work.key] = rescaled(
            self._histories[work.key], bounds_of(autoscaler), before=current, after=desired.replicas, now=work.now
        )
        draft.fill(current, desired.replicas, desired.metrics, rescaled=True)
        return True

    async def _desired(self, work: _Work, scale: Object, current: int) -> _Desired:
        """Return the replicas that the target shall have."""
        bounds = bounds_of(work.autoscaler)
        if current == 0 and bounds.least != 0:
            text = "scaling is disabled since the replica count of the target is zero"
            work.draft.put(ACTIVE, False, "ScalingDisabled", text)
            return _Desired(0)
        if current > bounds.most:
            return _Desired(bounds.most, "Current number of replicas above Spec.MaxReplicas")
        if current < bounds.least:
            return _Desired(bounds.least, "Current number of replicas below Spec.MinReplicas")
        pods = self._selected(work, str((scale.get("status") or {}).get("selector", "")))
        about = Circumstances(
            wanted=current,
            there=int((scale.get("status") or {}).get("replicas", 0)),
            pods=pods,
            now=work.now,
            tolerances=tolerances_of(work.autoscaler),
        )
        wanted, metric, statuses = await self._by_metrics(work, about, scale["status"]["selector"])
        reason = ""
        if wanted > current:
            reason = f"{metric} above target"
        elif wanted < current:
            reason = "All metrics below target"
        settled = settle(self._histories[work.key], bounds, current=current, wanted=wanted, now=work.now)
        self._histories[work.key] = settled.history
        work.draft.put(ABLE, True, *settled.able)
        work.draft.put(LIMITED, settled.limited, *settled.limit)
        return _Desired(settled.replicas, reason, statuses, settled.passing or any_warms_up(pods, work.now))

    def _selected(self, work: _Work, selector: str) -> list[Object]:
        """Return the pods of the target, if no other autoscaler selects one of them.

        Raises _NothingFoundError.
        """
        if not selector:
            self._warn(work, "SelectorRequired", "selector is required")
            work.draft.put(ACTIVE, False, "InvalidSelector", "the HPA target's scale is missing a selector")
            raise _NothingFoundError("selector is required")
        try:
            selects = label_selector(selector)
        except ValueError as error:
            text = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._refuse(work, "InvalidSelector", text)
        self._selectors.put(work.key, selects)
        namespace = namespace_of(work.autoscaler)
        pods = [pod for pod in self._pods.items() if namespace_of(pod) == namespace and selects(labels_of(pod))]
        rivals = self._selectors.selecting(namespace, pods)
        if len(rivals) > 1:
            text = f"pods by selector {selector} are controlled by multiple HPAs: [{' '.join(rivals)}]"
            self._refuse(work, "AmbiguousSelector", text)
        return pods

    def _refuse(self, work: _Work, reason: str, text: str) -> NoReturn:
        self._warn(work, reason, text)
        work.draft.put(ACTIVE, False, reason, text)
        raise _NothingFoundError(text)

    async def _by_metrics(
        self, work: _Work, about: Circumstances, selector: str
    ) -> tuple[int, str, list[dict[str, Any]]]:
        """Return the most replicas that any metric asks for, that metric, and the status of all. Where one fails, the
        others may add pods but take none away.

        Raises _NothingFoundError.
        """
        specs, namespace = work.autoscaler["spec"].get("metrics") or (), namespace_of(work.autoscaler)
        found, failed = list[Measured](), list[MetricFailure]()
        statuses: list[dict[str, Any]] = []
        for spec in specs:
            one = measured(spec, await self._metrics.read(spec, namespace, selector), about, namespace)
            if isinstance(one, MetricFailure):
                self._warn(work, one.reason, one.text)
                failed.append(one)
                statuses.append(_NO_METRIC)
            else:
                found.append(one)
                statuses.append(one.status)
        replicas, name = 0, ""
        for one in found:
            if replicas == 0 or one.replicas > replicas:
                replicas, name = one.replicas, one.name
        if failed and (not found or replicas < about.wanted):
            text = f"the HPA was unable to compute the replica count: {failed[0].text}"
            work.draft.put(ACTIVE, False, failed[0].reason, text)
            invalid = f"invalid metrics ({len(failed)} invalid out of {len(specs)}), first error is: {failed[0].whole}"
            raise _NothingFoundError(invalid, statuses)
        text = f"the HPA was able to successfully calculate a replica count from {name}"
        work.draft.put(ACTIVE, True, "ValidMetricFound", text)
        return replicas, name, statuses

    # Writes

    async def _write(self, work: _Work) -> bool:
        """Write the status if it changed; whether it did."""
        status = work.draft.changed()
        if status is None:
            return False
        body = {**work.autoscaler, "status": status}
        try:
            await self._context.kube.replace(AUTOSCALERS, body, subresource="status", field_manager=MANAGER)
        except NotFoundError:
            return True
        except (ApiError, UnavailableError) as error:
            self._warn(work, "FailedUpdateStatus", error.message if isinstance(error, ApiError) else str(error))
            self._context.log.info("the status of %s is not written: %s", name_of(work.autoscaler), error)
        return True

    def _warn(self, work: _Work, reason: str, text: str) -> None:
        self._emit(work, "Warning", reason, text)

    def _emit(self, work: _Work, kind: str, reason: str, text: str) -> None:
        about = {**work.autoscaler, "kind": AUTOSCALERS.kind, "apiVersion": AUTOSCALERS.api_version}
        self._events.event(reference(about), kind, reason, text)
