"""Which of several incarnations of a component acts: the one that holds a Lease, as client-go's election has it.

The holder renews the lease each ``retry_s``. Another one takes it once it has seen no renewal for ``lease_s`` by its
own clock: clocks of machines need not agree, only to go alike. A holder that could not renew for ``renew_s``, which is
less, stops; and from that moment on nothing that it still sends gets out, so that one that was suspended writes
nothing when it wakes up and another leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from msgspec import Struct

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, micro_timestamp
from mews.kube.api.resources import LEASES
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest
from mews.kube.component import Context, Runnable, record

_WRITES = frozenset({"create", "replace", "patch", "delete", "delete_collection", "bind", "evict"})


class ElectionTimes(Struct, frozen=True):
    """Seconds, client-go's own by default: ``renew_s`` must be less than ``lease_s``."""

    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0


class LeaderElection:
    """One candidate for the lease ``namespace``/``name``."""

    def __init__(
        self, context: Context, namespace: str, name: str, *, identity: str, times: ElectionTimes | None = None
    ) -> None:
        self._context = context
        self._namespace, self._name, self._identity = namespace, name, identity
        self._times = times or ElectionTimes()
        self._seen: tuple[str, str] = ("", "")
        self._seen_s = 0.0
        self._renewed_s = float("-inf")

    @property
    def leads(self) -> bool:
        """Whether the lease is surely still ours."""
        return self._context.clock.now() < self._renewed_s + self._times.renew_s

    async def run(self, made: Callable[[KubeApi], Runnable]) -> None:
        """Wait for the lease, run what is made for this term, and wait again once it is lost; until cancelled.

        ``made`` is given the API server, which takes writes while this candidate leads only. What it raises is raised.
        """
        while True:
            while not await self._try():
                await rest(self._times.retry_s)
            record(self._context.log, "leading", lease=self._name, identity=self._identity)
            await self._term(made(cast(KubeApi, _LeadersKube(self._context.kube, self))))
            record(self._context.log, "not-leading", lease=self._name, identity=self._identity)

    async def _term(self, runnable: Runnable) -> None:
        running = asyncio.create_task(runnable.run())
        renewing = asyncio.create_task(self._renew())
        try:
            await asyncio.wait((running, renewing), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            for task in (running, renewing):
                task.cancel()
            await asyncio.wait((running, renewing))

    async def _renew(self) -> None:
        """Until the lease is lost."""
        while True:
            await rest(self._times.retry_s)
            try:
                async with asyncio.timeout(max(self._renewed_s + self._times.renew_s - self._context.clock.now(), 0)):
                    while not await self._try():
                        await rest(self._times.retry_s)
            except TimeoutError:
                return

    async def _try(self) -> bool:
        """Take the lease or renew it; whether it is ours now."""
        kube, now_s = self._context.kube, self._context.clock.now()
        try:
            try:
                there = await kube.get(LEASES, self._name, namespace=self._namespace)
            except NotFoundError:
                body = {"metadata": {"name": self._name}, "spec": self._spec(now_s, acquired_s=now_s, transitions=0)}
                await kube.create(LEASES, body, namespace=self._namespace)
            else:
                if not self._free(there, now_s):
                    return False
                await kube.replace(LEASES, self._ours(there, now_s), namespace=self._namespace)
        except ConflictError:
            return False  # somebody else was sooner
        except (ApiError, UnavailableError) as error:
            record(self._context.log, "lease-not-renewed", lease=self._name, error=str(error))
            return False
        self._renewed_s = now_s
        return True

    def _free(self, there: Object, now_s: float) -> bool:
        spec = there.get("spec") or {}
        holder, seen = str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")
        if (holder, seen) != self._seen:
            self._seen, self._seen_s = (holder, seen), now_s
        return holder in ("", self._identity) or now_s >= self._seen_s + self._times.lease_s

    def _ours(self, there: Object, now_s: float) -> Object:
        spec = there.get("spec") or {}
        transitions = int(spec.get("leaseTransitions") or 0)
        made = self._spec(now_s, acquired_s=now_s, transitions=transitions + 1)
        if spec.get("holderIdentity") == self._identity:
            made |= {"acquireTime": spec.get("acquireTime"), "leaseTransitions": transitions}
        return {**there, "spec": made}

    def _spec(self, now_s: float, *, acquired_s: float, transitions: int) -> dict[str, Any]:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._times.lease_s),
            "acquireTime": micro_timestamp(acquired_s),
            "renewTime": micro_timestamp(now_s),
            "leaseTransitions": transitions,
        }


class _LeadersKube:
    """A KubeApi that takes no write from one that does not lead (any more)."""

    def __init__(self, kube: KubeApi, election: LeaderElection) -> None:
        self._kube, self._election = kube, election

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kube, name)
        if name not in _WRITES:
            return method

        async def write(*arguments: Any, **options: Any) -> Any:
            if not self._election.leads:
                raise UnavailableError(f"{name}: not sent: the lease is not held any more")
            return await method(*arguments, **options)

        return write
