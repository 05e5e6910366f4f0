"""What a node's containers are given: the extender's decision, found for an Allocate that does not say for whom it is,
and put right afterwards by what the kubelet says of who holds what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from mews.kube.api.errors import ApiError, Conflict, NotFound, Unavailable
from mews.kube.api.objects import Object, is_terminal, key_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import PODS
from mews.kube.client.informer import Informer
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.deviceplugin.port import PluginError
from mews.kube.system.ports import NodeAccess
from mews.systems.gpushare import names
from mews.systems.gpushare.answers import AnswerRecords
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.corrections import Correction, Corrector
from mews.systems.gpushare.given import GivenSlices, Held, admitting, lasting_requests, served
from mews.systems.gpushare.ledger import ATTEMPTS, NodeLedgers, Sharing, stands, uses_of
from mews.systems.gpushare.matching import PodCandidate, candidates, match
from mews.systems.gpushare.policy import SharedGpu, best_fit, free_memory, used_memory
from mews.systems.gpushare.records import LedgerEntry, assumption, container_requests, decided, requested
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
        self._given: list[GivenSlices] = []
        self._records = AnswerRecords(context, ledgers, node.name, config.settle_s)
        self._corrector = Corrector(context, ledgers, node.name)
        self._preferred: tuple[frozenset[str], tuple[str, str]] | None = None
        self._unseen: set[frozenset[str]] = set()
        self._partly: set[str] = set()
        self._begun = False
        self._woken = asyncio.Event()
        self.unit = ""
        pods.on_change(self._pod_changed)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            self._given = [given for given in self._given if given.uid != uid_of(old)]
        self._unseen &= {given.ids for given in self._given}
        self._woken.set()

    # Asked by the kubelet

    async def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> tuple[str, ...]:
        """Slices of the GPU that was decided on for the container that asks for so many; any, where there is none."""
        chosen = list(must_include)[:size]
        found = await self._decide(size)
        wanted = found[2].uuid if found is not None and found[2] is not None else ""
        if self._config.match == "seed":
            wanted = ""
        free = sorted(set(available) - set(chosen), key=lambda each: (gpu_of_slice(each) != wanted, _order(each)))
        preferred = (*chosen, *free[: size - len(chosen)])
        self._preferred = (frozenset(preferred), (found[0].uid, found[1])) if found is not None else None
        return preferred

    async def allocate(self, ids: Sequence[str]) -> dict[str, str]:
        """The variables of the container that is given these slices."""
        of = {gpu_of_slice(each) for each in ids}
        found = await self._decide(len(ids), of.pop() if len(of) == 1 else "", self._preferred_for(frozenset(ids)))
        gpu = None if found is None else found[2]
        await self._answered(GivenSlices(frozenset(ids), found[0].uid if found else "", found[1] if found else "", gpu))
        if found is None or gpu is None:
            record(self._context.log, "no-gpu-to-run", node=self._node.name, memory=len(ids))
            return self._failure(len(ids))
        candidate, container, _ = found
        pod = key_of(candidate.pod)
        record(self._context.log, "allocated", pod=pod, container=container, gpu=gpu.uuid, memory=len(ids))
        memory = self._memory(candidate.pod)
        return {
            names.VISIBLE: gpu.uuid,
            names.INDEX: str(gpu.index),
            names.POD_MEMORY: str(memory),
            names.CONTAINER_MEMORY: str(len(ids)),
            names.DEVICE_MEMORY: str(gpu.memory),
        }

    def _preferred_for(self, ids: frozenset[str]) -> tuple[str, str] | None:
        """The pod and container for which we preferred just these slices when last asked; good for one answer."""
        last, self._preferred = self._preferred, None
        return last[1] if last is not None and last[0] == ids else None

    async def _answered(self, given: GivenSlices) -> None:
        await self._records.write(given, self._slice_sets)
        self._given = [*(each for each in self._given if each.ids != given.ids), given]
        self._unseen.add(given.ids)
        self._woken.set()

    async def _slice_sets(self) -> set[frozenset[str]] | None:
        """Those of all containers, None while the kubelet does not say."""
        held = await self._held()
        of_answers = {given.ids for given in self._given}
        return of_answers.union(*(by.values() for by in held.values())) if held else None

    def _failure(self, amount: int) -> dict[str, str]:
        """As the public plugin says that it has none."""
        return {
            names.VISIBLE: f"no-gpu-has-{amount}{self.unit}-to-run",
            names.INDEX: "-1",
            names.POD_MEMORY: str(amount),
            names.CONTAINER_MEMORY: str(amount),
            names.DEVICE_MEMORY: str(max((gpu.memory for gpu in self._gpus()), default=0)),
        }

    async def _decide(
        self, amount: int, gpu: str = "", preferred: tuple[str, str] | None = None
    ) -> tuple[PodCandidate, str, SharedGpu | None] | None:
        """For which container that is, and which GPU it gets (None: there is none for it)."""
        pods: Sequence[Object] = await self._asked()
        held: Held = {}
        if self._config.match == "seed":
            waiting = candidates(pods, self._config.memory_resource, served(self._given, {}, pods), seed=True)
            found = match(amount, waiting)
        else:
            held = await self._held()
            if await self._recalled(held, pods):
                pods = await self._put_right(amount, held, pods)
            waiting = candidates(pods, self._config.memory_resource, served(self._given, held, pods))
            known = admitting(held, pods, self._config.memory_resource)
            found = match(amount, waiting, preferred=preferred, gpu=gpu, admitting=known)
        if found is None:
            return None
        candidate, container = found
        decided_on = await self._gpu(candidate)
        begun = self._begun_on(candidate.pod, held)
        if begun is None or (decided_on is not None and decided_on.uuid == begun.uuid):
            return candidate, container, decided_on
        await self._follow(candidate.pod, begun, held)
        return candidate, container, begun

    async def _recalled(self, held: Held, pods: Sequence[Object]) -> bool:
        """Whether it is known what earlier incarnations answered."""
        try:
            self._remember(await self._records.recall(held, pods))
        except (ApiError, Unavailable) as error:
            record(self._context.log, "answers-unread", node=self._node.name, error=str(error))
            return False
        return True

    def _remember(self, recalled: Iterable[GivenSlices]) -> None:
        known = {given.ids for given in self._given}
        self._given += [given for given in recalled if given.ids not in known]

    async def _put_right(self, amount: int, held: Held, pods: Sequence[Object]) -> Sequence[Object]:
        """The pods, once what was served crosswise is exchanged, and each that may be meant has a GPU of its own: an
        answer that goes to another pod than we think can then be made good by exchanging decisions."""
        crossed = {uid: each for uid, each in self._corrections(held, pods).items() if self._is_crossed(each)}
        if crossed:
            try:
                await self._corrector.write_all(crossed)
            except (ApiError, Unavailable) as error:
                record(self._context.log, "not-settled", node=self._node.name, error=str(error))
        undecided = [
            each
            for each in candidates(pods, self._config.memory_resource, served(self._given, held, pods))
            if each.decision is None and any(asked == amount for _, asked in each.waiting)
        ]
        for each in undecided:
            if not each.begun:
                await self._claim(each.pod)
        return await self._asked() if crossed or undecided else pods

    def _is_crossed(self, correction: Correction) -> bool:
        decision = assumption(correction.pod)
        return decision is None or correction.gpu is None or correction.gpu.uuid != decision.uuid

    async def _asked(self) -> list[Object]:
        """The node's pods by the API's word, for the kubelet may have heard of one before our watch; else by ours."""
        try:
            return await self._pods_by_api()
        except (ApiError, Unavailable) as error:
            record(self._context.log, "pods-unread", error=str(error))
            return list(self._pods.items())

    async def _pods_by_api(self) -> list[Object]:
        return (await self._context.kube.list(PODS, field_selector=f"spec.nodeName={self._node.name}")).items

    async def _held(self) -> Held:
        """Who holds what, by the kubelet; nobody while it does not say."""
        try:
            pods = await self._node.pod_resources.list()
        except PluginError:
            return {}
        resource = self._config.memory_resource
        return {
            f"{pod.namespace}/{pod.name}": {
                container: frozenset(each for one in devices if one.resource == resource for each in one.device_ids)
                for container, devices in pod.containers
            }
            for pod in pods
        }

    async def _gpu(self, candidate: PodCandidate) -> SharedGpu | None:
        """The GPU that was decided on; decided here for a pod that came past the extender, or whose GPU is gone."""
        decision = candidate.decision
        if decision is not None:
            for gpu in self._gpus():
                if (gpu.uuid == decision.uuid if decision.uuid else gpu.index == decision.index) and gpu.usable:
                    return gpu
        if self._config.match == "seed":
            return None
        return await self._claim(candidate.pod)

    async def _claim(self, pod: Object) -> SharedGpu | None:
        """Decide here: the ledger first, then the annotations. An answer of the API that is lost is asked for again, so
        that what is written and what the container is told do not differ."""
        async with self._ledgers.lock(self._node.name):
            for _ in range(ATTEMPTS):
                try:
                    return await self._claimed(pod)
                except Conflict:
                    continue
                except (ApiError, Unavailable) as error:
                    record(self._context.log, "not-claimed", pod=key_of(pod), error=str(error))
                    await rest(self._config.settle_s)
        return None

    async def _claimed(self, pod: Object) -> SharedGpu | None:
        memory = self._memory(pod)
        await self._ledgers.read(self._node.name)
        sharing = Sharing(self._node.name, self._gpus(), await self._pods_by_api())
        gpu = await self._ledgers.promise(pod, memory, sharing, self._stands)
        if gpu is not None:
            body = {"metadata": {"annotations": decided(gpu, memory, int(self._context.clock.now() * 1e9))}}
            await self._context.kube.patch(PODS, name_of(pod), body, namespace=namespace_of(pod))
        return gpu

    async def _stands(self, entry: LedgerEntry) -> bool:
        try:
            pod: Object | None = await self._context.kube.get(PODS, entry.name, namespace=entry.namespace)
        except NotFound:
            pod = None
        return stands(entry, pod, self._node.name, entry.version)

    def _begun_on(self, pod: Object, held: Held) -> SharedGpu | None:
        """The GPU in the environment of those of its containers that are served; None where none has one."""
        return next((gpu for ids in held.get(key_of(pod), {}).values() if ids and (gpu := self._env_gpu(ids))), None)

    async def _follow(self, pod: Object, gpu: SharedGpu, held: Held) -> None:
        """Have all of a pod on the GPU that its first container was told when it was served in another pod's place: the
        others change places with it.

        Raises PluginError where that GPU has no room for all of it: a pod has one GPU, or is not admitted.
        """
        others = set(self._taken_for(held[key_of(pod)], uid_of(pod)))
        try:
            followed = await self._corrector.write(lambda: self._changed_places(pod, gpu, others))
        except (ApiError, Unavailable) as error:
            raise PluginError("Unavailable", f"{key_of(pod)}: {error}") from error
        if not followed:
            record(self._context.log, "not-followed", pod=key_of(pod), gpu=gpu.uuid)
            text = f"{key_of(pod)} has begun on {gpu.uuid} in another pod's place, which has no room for all of it"
            raise PluginError("ResourceExhausted", text)

    async def _changed_places(self, pod: Object, gpu: SharedGpu, others: Collection[str]) -> dict[str, Correction]:
        """What is to be written where there is room, by the ledger as it was just read; else nothing."""
        of = {uid_of(each): each for each in await self._pods_by_api()}
        moving = {uid_of(pod), *others}
        entries = {
            uid: entry
            for uid, entry in self._ledgers.entries(self._node.name).items()
            if uid not in moving and await self._stands(entry)
        }
        gpus = {each.uuid: each for each in (gpu, *self._gpus())}
        used = used_memory(list(gpus.values()), uses_of((of[uid] for uid in of if uid not in moving), entries))
        free = free_memory(list(gpus.values()), used)
        memory = self._memory(pod)
        if free[gpu.uuid] < memory:
            return {}
        free[gpu.uuid] -= memory
        found = {uid_of(pod): Correction(of.get(uid_of(pod), pod), gpu, memory, assigned=False)}
        for uid in sorted(uid for uid in others if uid in of and not is_terminal(of[uid])):
            memory, decision = self._memory(of[uid]), assumption(of[uid])
            mine = gpus.get(decision.uuid) if decision is not None else None
            fits = mine is not None and free[mine.uuid] >= memory
            place = mine if fits else best_fit(memory, list(gpus.values()), free)
            if place is not None:
                free[place.uuid] -= memory
            found[uid] = Correction(of[uid], place, memory, assigned=False)
        return found

    # Afterwards

    async def settle_on(self) -> None:
        """Bring annotations in line with what containers were given, until cancelled."""
        while True:
            try:
                await self._settle()
            except (ApiError, Unavailable) as error:
                record(self._context.log, "not-settled", node=self._node.name, error=str(error))
            if self._is_settled():
                self._woken.clear()
                await self._woken.wait()
            await rest(self._config.settle_s)

    def _is_settled(self) -> bool:
        if self._unseen or not self._begun:
            return False
        live = (pod for pod in self._pods.items() if not is_terminal(pod) and uid_of(pod) not in self._partly)
        decisions = (assumption(pod) for pod in live)
        return all(decision is None or decision.assigned for decision in decisions)

    async def _settle(self) -> None:
        if self._is_settled():
            return
        answers = set(self._given)
        held = await self._held()
        # By the API's word: a watch that lags would have an exchange made that is long made.
        pods = await self._pods_by_api()
        self._remember(await self._records.recall(held, pods))
        corrections = self._corrections(held, pods)
        corrections.update(self._refused(held, pods, corrections))
        if corrections:
            await self._corrector.write_all(corrections)
        self._forget_answers(answers, held, pods)
        self._begun = self._begun or bool(held) or not pods

    def _forget_answers(self, answers: Collection[GivenSlices], held: Held, pods: Sequence[Object]) -> None:
        """Those of ``answers`` that came to nothing, and which were heeded. Others were given after the look, which
        does not show them: the write that came between may have taken long."""
        seen = {ids for by in held.values() for ids in by.values()}
        live = {uid_of(pod) for pod in pods if not is_terminal(pod)}
        self._given = [each for each in self._given if each not in answers or each.ids in seen or each.uid in live]
        self._unseen &= {given.ids for given in self._given if given.ids not in seen}

    def _corrections(self, held: Held, of: Sequence[Object]) -> dict[str, Correction]:
        found: dict[str, Correction] = {}
        exchanged: dict[str, SharedGpu | None] = {}
        pods = {uid_of(pod): pod for pod in of if not is_terminal(pod)}
        for uid, pod in pods.items():
            decision = assumption(pod)
            if decision is not None and decision.assigned:
                continue
            taken_for = self._taken_for(held.get(key_of(pod), {}), uid)
            if decision is None and not taken_for:
                continue  # it was told that there is no GPU for it
            given = self._given_to(pod, held)
            if given is None:
                continue
            memory = decision.memory if decision is not None else self._given_memory(held[key_of(pod)])
            found[uid] = Correction(pod, given, memory, assigned=True)
            if decision is None:
                exchanged.update(dict.fromkeys(taken_for))  # their place is taken: to be decided anew
            elif decision.uuid and given.uuid != decision.uuid:
                mine = next((gpu for gpu in self._gpus() if gpu.uuid == decision.uuid), given)
                exchanged.update(dict.fromkeys(taken_for, mine))
        for uid, gpu in exchanged.items():
            if uid in pods and uid not in found:
                found[uid] = Correction(pods[uid], gpu, self._memory(pods[uid]), assigned=False)
        return found

    def _refused(self, held: Held, pods: Sequence[Object], known: Mapping[str, Correction]) -> dict[str, Correction]:
        """Pods whose containers were told that there is no GPU for them: whatever was written down for them goes."""
        refused = {}
        for pod in pods:
            by, wanted = held.get(key_of(pod), {}), lasting_requests(pod, self._config.memory_resource)
            if is_terminal(pod) or uid_of(pod) in known or not wanted or any(not by.get(name) for name, _ in wanted):
                continue
            decision = assumption(pod)
            answers = [given.gpu for given in self._given if given.ids in {by[name] for name, _ in wanted}]
            nothing = decision is None if not answers else not any(answers)
            if nothing and (decision is None or not decision.assigned):
                refused[uid_of(pod)] = Correction(pod, None, 0, assigned=False)
        return refused

    def _given_memory(self, by: Mapping[str, frozenset[str]]) -> int:
        """What a pod's containers were given of a GPU, by our answers."""
        return sum(len(given.ids) for given in self._given if given.ids in set(by.values()))

    def _given_to(self, pod: Object, held: Held) -> SharedGpu | None:
        """The GPU in the env of all its containers, once each has its slices; None before."""
        by = held.get(key_of(pod))
        wanted = lasting_requests(pod, self._config.memory_resource)
        if not wanted:
            own = [given.gpu for given in self._given if given.uid == uid_of(pod)]
            return own[0] if len(own) == len(container_requests(pod, self._config.memory_resource)) else None
        if by is None or any(not by.get(name) for name, _ in wanted):
            return None
        gpus = [self._env_gpu(by[name]) for name, _ in wanted]
        if None in gpus:
            if any(gpus):
                self._partly.add(uid_of(pod))  # for good: no container is asked for again
            return None
        if len({gpu.uuid for gpu in gpus if gpu is not None}) > 1:
            # Served in other pods' places while the kubelet did not say whom it admits: no annotation is right.
            if uid_of(pod) not in self._partly:
                record(self._context.log, "split", pod=key_of(pod), gpus=[gpu.uuid for gpu in gpus if gpu is not None])
            self._partly.add(uid_of(pod))
            return None
        return gpus[0]

    def _env_gpu(self, ids: frozenset[str]) -> SharedGpu | None:
        for given in self._given:
            if given.ids == ids:
                return given.gpu
        # Another incarnation answered: it preferred slices of the GPU that it put into the env.
        uuids = {gpu_of_slice(each) for each in ids}
        return next((gpu for gpu in self._gpus() if uuids == {gpu.uuid}), None)

    def _taken_for(self, by: Mapping[str, frozenset[str]], uid: str) -> list[str]:
        """The pods for which we took this one."""
        mine = set(by.values())
        return [given.uid for given in self._given if given.ids in mine and given.uid != uid]

    def _memory(self, pod: Object) -> int:
        return requested(pod, self._config.memory_resource)


def _order(device: str) -> tuple[str, int]:
    uuid = gpu_of_slice(device)
    return (uuid, int(device.rpartition("-")[2])) if uuid else (device, 0)
