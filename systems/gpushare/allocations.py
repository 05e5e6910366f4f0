"""What a node's containers are given: the extender's decision, found for an Allocate that does not say for whom it is,
and put right afterwards by what the kubelet says of who holds what.

An answer is one compare-and-swap of the node's ledger: what it follows from, whom it is for and what it says are
written in one go, before it is given. Nothing is remembered otherwise, so that it does not matter when somebody dies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, is_terminal, key_of, uid_of
from mews.kube.api.resources import PODS
from mews.kube.client.informer import Informer
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.deviceplugin.port import PluginError
from mews.kube.system.ports import NodeAccess
from mews.systems.gpushare import names
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.corrections import annotate
from mews.systems.gpushare.given import Held, HeldSlices, digests_held
from mews.systems.gpushare.ledger import ATTEMPTS, NodeLedgers, stands
from mews.systems.gpushare.node_plan import AllocateTarget, GpuNodeState, NodePlan, NoRoomToFollowError
from mews.systems.gpushare.policy import SharedGpu, without
from mews.systems.gpushare.records import (
    LedgerEntry,
    RecordedAnswer,
    assumption,
    ledger_entries,
    recorded_answers,
    requested,
    withheld_gpus,
)
from mews.systems.gpushare.slices import gpu_of_slice


class NodeAllocations:
    """One node's; ``gpus`` are those announced now."""

    def __init__(
        self,
        context: Context,
        config: GpuShareConfig,
        node: NodeAccess,
        ledgers: NodeLedgers,
        pods: Informer,
        gpus: Callable[[], Sequence[SharedGpu]],
    ) -> None:
        self._context = context
        self._config = config
        self._node = node
        self._ledgers = ledgers
        self._pods = pods
        self._gpus = gpus
        self._preferred: tuple[frozenset[str], tuple[str, str]] | None = None
        self._digested: dict[frozenset[str], HeldSlices] = {}
        self._unseen = ""
        self._split: set[str] = set()
        self._settled = False
        self._woken = asyncio.Event()
        self.unit = ""
        pods.on_change(lambda old, new: self._woken.set())

    # Asked by the kubelet

    async def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> tuple[str, ...]:
        """Slices of the GPU that was decided on for the container that asks for so many; any, where there is none."""

        async def serve() -> AllocateTarget | None:
            return self._serve(NodePlan((await self._look())[1], allocating=True), size)

        chosen = list(must_include)[:size]
        found = await self._insist(serve)
        wanted = found.gpu.uuid if found is not None and found.gpu is not None else ""
        if self._config.match == "seed":
            wanted = ""
        free = sorted(set(available) - set(chosen), key=lambda each: (gpu_of_slice(each) != wanted, _order(each)))
        preferred = (*chosen, *free[: size - len(chosen)])
        self._preferred = (frozenset(preferred), (uid_of(found.pod), found.container)) if found is not None else None
        return preferred

    async def allocate(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the variables of the container that is given these slices.

        Raises PluginError where the API does not take the answer: a container whose GPU nobody can know later must not
        begin.
        """
        slices, preferred = HeldSlices.of(ids), self._preferred_for(frozenset(ids))
        found = await self._insist(lambda: self._answer(slices, preferred))
        self._unseen, self._settled = slices.digest, False
        self._woken.set()
        if found is None or found.gpu is None:
            record(self._context.log, "no-gpu-to-run", node=self._node.name, memory=len(ids))
            return self._failure(len(ids))
        pod, gpu = key_of(found.pod), found.gpu
        record(self._context.log, "allocated", pod=pod, container=found.container, gpu=gpu.uuid, memory=len(ids))
        return {
            names.VISIBLE: gpu.uuid,
            names.INDEX: str(gpu.index),
            names.POD_MEMORY: str(requested(found.pod, self._config.memory_resource)),
            names.CONTAINER_MEMORY: str(len(ids)),
            names.DEVICE_MEMORY: str(gpu.memory),
        }

    def _preferred_for(self, ids: frozenset[str]) -> tuple[str, str] | None:
        """Return the pod and container for which we preferred just these slices when last asked; good for one
        answer."""
        last, self._preferred = self._preferred, None
        return last[1] if last is not None and last[0] == ids else None

    def _failure(self, amount: int) -> dict[str, str]:
        """Return them as the public plugin says that it has none."""
        return {
            names.VISIBLE: f"no-gpu-has-{amount}{self.unit}-to-run",
            names.INDEX: "-1",
            names.POD_MEMORY: str(amount),
            names.CONTAINER_MEMORY: str(amount),
            names.DEVICE_MEMORY: str(max((gpu.memory for gpu in self._gpus()), default=0)),
        }

    async def _insist(self, work: Callable[[], Awaitable[AllocateTarget | None]]) -> AllocateTarget | None:
        """Do it until it works: an answer of the API that is lost is asked for again, so that what is written and what
        the container is told do not differ; another's write has it looked again.

        Raises PluginError where it does not work, or there is no answer.
        """
        async with self._ledgers.lock(self._node.name):
            for _ in range(ATTEMPTS):
                try:
                    return await work()
                except NoRoomToFollowError as no_room:
                    record(self._context.log, "not-followed", node=self._node.name, error=str(no_room))
                    raise PluginError("ResourceExhausted", str(no_room)) from no_room
                except ConflictError:
                    continue
                except (ApiError, UnavailableError) as error:
                    record(self._context.log, "not-answered", node=self._node.name, error=str(error))
                    await rest(self._config.settle_s)
        raise PluginError("Unavailable", f"the ledger of {self._node.name} cannot be written")

    async def _answer(self, slices: HeldSlices, preferred: tuple[str, str] | None) -> AllocateTarget | None:
        ledger, state = await self._look()
        plan = NodePlan(state, allocating=True)
        found = self._serve(plan, slices.count, slices.gpu, preferred)
        pod, container = (uid_of(found.pod), found.container) if found is not None else ("", "")
        answer = RecordedAnswer.of(found.gpu if found is not None else None, pod, container)
        changes = {uid: each.entry for uid, each in plan.corrections.items()}
        answers = plan.answered(slices.digest, answer)
        await self._ledgers.update(self._node.name, ledger, changes, answers)
        try:
            await annotate(self._context, plan.corrections.values())
        except (ApiError, UnavailableError) as error:  # what counts is written
            record(self._context.log, "not-settled", node=self._node.name, error=str(error))
        return found

    def _serve(
        self, plan: NodePlan, amount: int, gpu: str = "", preferred: tuple[str, str] | None = None
    ) -> AllocateTarget | None:
        if self._config.match == "seed":
            return plan.serve(amount, seed=True)
        plan.exchange()
        return plan.serve(amount, gpu=gpu, preferred=preferred)

    # Looking

    async def _look(self) -> tuple[Object | None, GpuNodeState]:
        """Return the ledger, and the node with it. The ledger first: whoever is bound since has another written.

        Raises ApiError, UnavailableError.
        """
        ledger = await self._ledgers.read(self._node.name)
        pods = (await self._context.kube.list(PODS, field_selector=f"spec.nodeName={self._node.name}")).items
        here = {uid_of(pod) for pod in pods}
        entries = {
            uid: entry for uid, entry in ledger_entries(ledger).items() if uid in here or await self._stands(entry)
        }
        gpus = without(self._gpus(), withheld_gpus(ledger))
        answers = recorded_answers(ledger)
        return ledger, GpuNodeState(self._config.memory_resource, gpus, pods, await self._held(), entries, answers)

    async def _stands(self, entry: LedgerEntry) -> bool:
        try:
            pod: Object | None = await self._context.kube.get(PODS, entry.name, namespace=entry.namespace)
        except NotFoundError:
            pod = None
        return stands(entry, pod, self._node.name, entry.version)

    async def _held(self) -> Held | None:
        """Return who holds what, by the kubelet; None while it does not say."""
        try:
            pods = await self._node.pod_resources.list()
        except PluginError:
            return None
        resource = self._config.memory_resource
        found: dict[str, dict[str, HeldSlices]] = {}
        known, self._digested = self._digested, {}
        for pod in pods:
            by = found.setdefault(f"{pod.namespace}/{pod.name}", {})
            for container, devices in pod.containers:
                ids = frozenset(each for one in devices if one.resource == resource for each in one.device_ids)
                if ids:
                    by[container] = self._digested[ids] = known.get(ids) or HeldSlices.of(ids)
        return found

    # Afterwards

    async def settle_on(self) -> None:
        """Bring annotations in line with what containers were given, until cancelled."""
        while True:
            try:
                await self._settle()
            except (ApiError, UnavailableError) as error:
                record(self._context.log, "not-settled", node=self._node.name, error=str(error))
            if self._is_settled():
                self._woken.clear()
                await self._woken.wait()
            await rest(self._config.settle_s)

    def _is_settled(self) -> bool:
        if not self._settled:
            return False
        live = (pod for pod in self._pods.items() if not is_terminal(pod) and uid_of(pod) not in self._split)
        decisions = (assumption(pod) for pod in live)
        return all(decision is None or decision.assigned for decision in decisions)

    async def _settle(self) -> None:
        if self._is_settled():
            return
        unseen = self._unseen
        async with self._ledgers.lock(self._node.name):
            ledger, state = await self._look()
            plan = NodePlan(state)
            plan.exchange()
            plan.refuse()
            plan.align()
            changes = {uid: each.entry for uid, each in plan.corrections.items()}
            await self._ledgers.update(self._node.name, ledger, changes)
        for uid in plan.split.keys() - self._split:
            record(self._context.log, "split", node=self._node.name, pod=uid, gpus=list(plan.split[uid]))
        self._split = set(plan.split)  # for good: no container is asked for again
        if not await annotate(self._context, plan.corrections.values()) or unseen != self._unseen:
            return
        if unseen and self._comes_to_something(unseen, state):
            return
        self._settled = self._settled or bool(state.held) or all(map(is_terminal, state.pods))

    def _comes_to_something(self, unseen: str, state: GpuNodeState) -> bool:
        """Return whether the kubelet may still show whom it gave what was answered last."""
        answer = state.answers.get(unseen)
        live = {uid_of(pod) for pod in state.pods if not is_terminal(pod)}
        return unseen not in digests_held(state.held or {}) and answer is not None and answer.pod in live


def _order(device: str) -> tuple[str, int]:
    uuid = gpu_of_slice(device)
    return (uuid, int(device.rpartition("-")[2])) if uuid else (device, 0)
