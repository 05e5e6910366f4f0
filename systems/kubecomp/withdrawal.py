"""Asking nodes for devices, and asking them back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mews.kube.component import Context, record
from mews.kube.pulse import Pulse
from mews.systems.kubecomp import rules
from mews.systems.kubecomp.config import Timing
from mews.systems.kubecomp.config_map_writer import ConfigMapWriter
from mews.systems.kubecomp.policy import Gpu
from mews.systems.kubecomp.records import (
    NODE_PREFIX,
    WITHDRAW_PREFIX,
    NodeReport,
    WithdrawRequest,
    node_report,
    withdraw_data,
    withdraw_requests,
)
from mews.systems.kubecomp.view import ClusterView


class Withdrawals:
    """The requests that stand at the nodes of one pool; the only writer of their ``withdraw-<node>``.

    Methods that write raise ApiError and UnavailableError.
    """

    def __init__(
        self,
        context: Context,
        board: ConfigMapWriter,
        view: ClusterView,
        timing: Timing,
        *,
        per_device_s: float = 0.0,
    ) -> None:
        self._context = context
        self._board = board
        self._view = view
        self._timing = timing
        self._per_device_s = per_device_s
        self._standing: dict[str, dict[str, WithdrawRequest]] = {}
        self.answered = Pulse()
        """Beaten by whoever hears of a new report."""

    async def adopt(self, nodes: Iterable[str]) -> None:
        """Take over what an earlier incarnation asked of these nodes."""
        for node in nodes:
            found = withdraw_requests(await self._board.read(f"{WITHDRAW_PREFIX}{node}"))
            if found:
                self._standing[node] = found

    async def ask(self, gpus: Sequence[Gpu]) -> Mapping[str, str]:
        """Ask for these attached devices; GPUID -> request."""
        asked: dict[str, str] = {}
        now_s = self._context.clock.now()
        until_s = now_s + self._timing.withdrawal_lease_s
        for gpu in gpus:
            # With the time in it no later incarnation asks in the same words, whatever its stream of chance.
            asked[gpu.gpuid] = request = f"{int(now_s * 1e3):x}-{self._context.rng.getrandbits(32):08x}"
            self._standing.setdefault(gpu.node, {})[gpu.gpuid] = WithdrawRequest(request, until_s)
            record(self._context.log, "withdrawal-asked", device=gpu.gpuid, node=gpu.node, request=request)
        await self._write(sorted({gpu.node for gpu in gpus}))
        return asked

    async def renew(self) -> None:
        """Let all requests stand for a whole lease from now."""
        until_s = self._context.clock.now() + self._timing.withdrawal_lease_s
        for entries in self._standing.values():
            for gpuid, entry in entries.items():
                entries[gpuid] = WithdrawRequest(entry.request, until_s)
        await self._write(sorted(node for node, entries in self._standing.items() if entries))

    async def ask_back(self, gpuids: Iterable[str] | None = None) -> None:
        """Give up these requests, or all: their nodes announce the devices again if they are still there."""
        chosen = set(gpuids) if gpuids is not None else None
        touched = []
        for node, entries in sorted(self._standing.items()):
            gone = [gpuid for gpuid in entries if chosen is None or gpuid in chosen]
            for gpuid in gone:
                del entries[gpuid]
            if gone:
                touched.append(node)
        await self._write(touched)

    async def _write(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            await self._board.write(f"{WITHDRAW_PREFIX}{node}", withdraw_data(self._standing.get(node, {})))

    async def wait(self, gpus: Sequence[Gpu], requests: Mapping[str, str]) -> frozenset[str]:
        """Wait until each was answered or the time is up; the GPUIDs with consent."""
        # A host takes its devices out one after the other.
        longest = max(Counter(gpu.node for gpu in gpus).values(), default=1)
        limit_s = self._timing.withdrawal_timeout_s + (longest - 1) * self._per_device_s
        deadline_s = asyncio.get_running_loop().time() + limit_s
        try:
            async with asyncio.timeout_at(deadline_s) as bound:
                while not all(self._answer(gpu, requests[gpu.gpuid]) is not None for gpu in gpus):
                    await self.answered.wait()
                    bound.reschedule(max(deadline_s, self._released_by_s(gpus) + limit_s))
        except TimeoutError:
            record(self._context.log, "withdrawal-timeout", devices=[gpu.gpuid for gpu in gpus])
        return frozenset(gpu.gpuid for gpu in gpus if self._answer(gpu, requests[gpu.gpuid]))

    def _released_by_s(self, gpus: Sequence[Gpu]) -> float:
        """Return until when pods may take to go that use parts of these devices, by the loop's time; 0 where none have
        to."""
        untils = [self._view.report(gpu.node).releasing.get(gpu.gpuid, 0.0) for gpu in gpus]
        latest_s = max(untils, default=0.0)
        return asyncio.get_running_loop().time() + latest_s - self._context.clock.now() if latest_s else 0.0

    def _answer(self, gpu: Gpu, request: str) -> bool | None:
        report = self._view.report(gpu.node)
        if not self._in_use(report, gpu.gpuid, request):
            return True
        if report.refused.get(gpu.gpuid) == request or gpu.gpuid in report.held:
            return False
        return None

    def reasons(self, gpus: Sequence[Gpu], requests: Mapping[str, str]) -> Mapping[str, str]:
        """Return why hosts did not give up devices that were asked for; GPUID -> reason, of those only."""
        found = {}
        for gpu in gpus:
            report = self._view.report(gpu.node)
            if report.refused.get(gpu.gpuid) == requests.get(gpu.gpuid) and gpu.gpuid in report.reasons:
                found[gpu.gpuid] = report.reasons[gpu.gpuid]
        return found

    async def is_in_use(self, node: str, gpuid: str, request: str) -> bool:
        """Return the in-use test just before a detach, on the report as the API has it now."""
        report = node_report(await self._board.read(f"{NODE_PREFIX}{node}"))
        return report is None or self._in_use(report, gpuid, request)

    def _in_use(self, report: NodeReport, gpuid: str, request: str) -> bool:
        return rules.in_use(report, gpuid, now_s=self._context.clock.now(), timing=self._timing, request=request)
