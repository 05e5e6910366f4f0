"""Kubernetes events as client-go's recorder writes them: repeats raise a count (contract kubelet.md section 10)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any
from zlib import crc32

from msgspec import Struct

from mews.kube.api.errors import AlreadyExistsError, ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, ephemeral_containers_of, init_containers_of, timestamp
from mews.kube.api.resources import EVENTS
from mews.kube.client.port import Patch
from mews.kube.clock import rest
from mews.kube.component import Context

_KNOWN = 4096
_SIMILAR, _SIMILAR_S = 10, 600.0
"""So many different messages of one reason about one object within that time, and they are told as one."""
_BURST, _REFILL_S = 25.0, 300.0
"""Events about one object: so many at once, then one in that time; the rest is dropped (client-go's spam filter)."""
_COMBINED = "(combined from similar events): "
_RETRY_S = 1.0
_ATTEMPTS = 12


class _Posted(Struct):
    name: str
    namespace: str
    count: int


class _Kin(Struct):
    """Messages of one reason about one object."""

    messages: dict[str, None]
    seen_s: float


class _Bucket(Struct):
    tokens: float
    filled_s: float

    def full_s(self) -> float:
        """Return when it has all its tokens again."""
        return self.filled_s + (_BURST - self.tokens) * _REFILL_S


class _Sighting(Struct, frozen=True):
    key: tuple[str, ...]
    body: dict[str, Any]
    namespace: str


def reference(obj: Mapping[str, Any], *, field_path: str = "", kind: str = "") -> dict[str, Any]:
    """Return an object reference, as an event's ``involvedObject``."""
    metadata = obj["metadata"]
    made = {"kind": obj.get("kind") or kind, "namespace": metadata.get("namespace"), "name": metadata["name"]}
    made |= {"uid": metadata.get("uid"), "apiVersion": obj.get("apiVersion", "v1")}
    made |= {"resourceVersion": metadata.get("resourceVersion"), "fieldPath": field_path}
    return {key: value for key, value in made.items() if value}


def pod_reference(pod: Object, *, container: str = "") -> dict[str, Any]:
    """Return a reference to a pod, or to one of its containers."""
    where = f"spec.{_list_of(pod, container)}{{{container}}}" if container else ""
    return reference({**pod, "kind": "Pod", "apiVersion": "v1"}, field_path=where)


def _list_of(pod: Object, container: str) -> str:
    if any(container == each["name"] for each in init_containers_of(pod)):
        return "initContainers"
    is_ephemeral = any(container == each["name"] for each in ephemeral_containers_of(pod))
    return "ephemeralContainers" if is_ephemeral else "containers"


def node_reference(name: str) -> dict[str, Any]:
    """Return a reference to a node as the kubelet makes it: its uid is its name."""
    return {"kind": "Node", "name": name, "uid": name}


class EventRecorder:
    """Posts events in order from a task of its own (``run``), so that nobody waits for them."""

    def __init__(self, context: Context, component: str, host: str = "") -> None:
        self._context = context
        self._component = component
        self._host = host
        self._queue: deque[_Sighting] = deque()
        self._queued = asyncio.Event()
        self._posted: dict[bytes, _Posted] = {}
        self._kin: dict[tuple[str, ...], _Kin] = {}
        self._buckets: dict[tuple[str, ...], _Bucket] = {}
        self._number = crc32(f"{component}/{host}".encode()) % 1_000_000

    def event(self, involved: Mapping[str, Any], kind: str, reason: str, message: str) -> None:
        """Note an event of type ``Normal`` or ``Warning``. Does not wait."""
        now = self._context.clock.now()
        stamp = timestamp(now)
        namespace = str(involved.get("namespace") or "default")
        source = {"component": self._component, "host": self._host} if self._host else {"component": self._component}
        body: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": self._name(str(involved["name"])), "namespace": namespace},
            "involvedObject": dict(involved),
            "reason": reason,
            "message": message,
            "source": source,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "type": kind,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }
        about = (str(involved.get("uid")), str(involved.get("fieldPath")), str(involved["name"]))
        key: tuple[str, ...] = (*about, kind, reason, message)
        if self._is_one_of_many((*about, kind, reason), message, now):
            key = (*about, kind, reason)
            body["message"] = _COMBINED + message
        if not self._may_emit(about, now):
            return
        self._queue.append(_Sighting(key, body, namespace))
        self._queued.set()

    def _is_one_of_many(self, family: tuple[str, ...], message: str, now: float) -> bool:
        kin = self._kin.pop(family, None)
        if kin is None or now - kin.seen_s > _SIMILAR_S:
            kin = _Kin({}, now)
        kin.seen_s = now
        kin.messages[message] = None
        self._kin[family] = kin
        _forget_oldest(self._kin)
        while (oldest := next(iter(self._kin.items())))[1].seen_s < now - _SIMILAR_S:
            del self._kin[oldest[0]]
        if len(kin.messages) < _SIMILAR:
            return False
        kin.messages.pop(next(iter(kin.messages)))
        return True

    def _may_emit(self, about: tuple[str, ...], now: float) -> bool:
        bucket = self._buckets.pop(about, None) or _Bucket(_BURST, now)
        bucket.tokens = min(bucket.tokens + (now - bucket.filled_s) / _REFILL_S, _BURST)
        bucket.filled_s = now
        self._buckets[about] = bucket
        _forget_oldest(self._buckets)
        # One that has filled up again is as good as none.
        while (oldest := next(iter(self._buckets.items())))[1].full_s() < now:
            del self._buckets[oldest[0]]
        if bucket.tokens < 1.0:
            return False
        bucket.tokens -= 1.0
        return True

    def _name(self, involved: str) -> str:
        """Return the object's name and nanoseconds, as client-go; made to differ within one instant."""
        self._number = (self._number + 1) % 1_000_000
        return f"{involved}.{int(self._context.clock.now() * 1e3) * 1_000_000 + self._number:x}"

    async def run(self) -> None:
        """Post what is queued, until cancelled. An event that cannot be posted is dropped after a while."""
        while True:
            await self.post()
            self._queued.clear()
            await self._queued.wait()

    async def post(self) -> None:
        """Post what is queued: for who ends before ``run`` comes to it."""
        while self._queue:
            await self._post(self._queue.popleft())

    async def _post(self, sighting: _Sighting) -> None:
        for _ in range(_ATTEMPTS):
            try:
                await self._write(sighting)
                return
            except ApiError as error:
                self._context.log.info("event %s refused: %s", sighting.body["reason"], error)
                return
            except UnavailableError:
                await rest(_RETRY_S)

    async def _write(self, sighting: _Sighting) -> None:
        key = _digest(sighting.key)
        kube, known = self._context.kube, self._posted.pop(key, None)
        if known is not None:
            change = {"count": known.count + 1, "lastTimestamp": sighting.body["lastTimestamp"]}
            if sighting.body["message"].startswith(_COMBINED):
                change["message"] = sighting.body["message"]
            try:
                await kube.patch(EVENTS, known.name, change, kind=Patch.MERGE, namespace=known.namespace)
                self._posted[key] = _Posted(known.name, known.namespace, known.count + 1)
                return
            except NotFoundError:
                pass
        try:
            await kube.create(EVENTS, sighting.body, namespace=sighting.namespace)
        except AlreadyExistsError:
            sighting.body["metadata"]["name"] = self._name(sighting.body["involvedObject"]["name"])
            await kube.create(EVENTS, sighting.body, namespace=sighting.namespace)
        self._posted[key] = _Posted(sighting.body["metadata"]["name"], sighting.namespace, 1)
        _forget_oldest(self._posted)


def _digest(key: tuple[str, ...]) -> bytes:
    """Return what stands for a key that is remembered for long: messages are."""
    return blake2b("\0".join(key).encode(errors="surrogatepass"), digest_size=16).digest()


def _forget_oldest(known: dict[Any, Any]) -> None:
    if len(known) > _KNOWN:
        known.pop(next(iter(known)))
