"""What a write shows to admission, and how admission is asked (k8s.io/apiserver pkg/admission).

The store is given its chain as it is given its rules: neither imports the other. A write is one atomic step; what only
somebody outside can answer (a webhook) makes it stop with ``PendingCallsError``, and ``completed`` asks and begins it
anew with the answers, on the state of then. So does a read of what only a webhook can convert, with ``answered``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct, field

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.long_work import LONG_WORK, LongWorkPendingError
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.users import User

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store

T = TypeVar("T")


class AdmissionOperation(StrEnum):
    """What is done to a resource, as admission names it."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class AdmissionAttributes(Struct):
    """One request before admission.

    ``obj`` is what would be stored, in storage form (None on deletion); plugins of the first phase change it in place
    or put another in its place, and set ``changed``. ``body_kind`` is the (group, version, kind) of a subresource's own
    body. What must happen with the commit, and only then, is put into ``settlements``.
    """

    kind: Kind
    operation: AdmissionOperation
    obj: Object | None
    old: Object | None
    request: WriteRequest
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body_kind: tuple[str, str, str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    changed: bool = False
    settlements: list[Callable[[], None]] = field(default_factory=list)
    reinvocation: object | None = None
    """What the mutating phase remembers from its first pass to its second."""

    @property
    def user(self) -> User:
        """Who asks."""
        return self.request.identity

    def settle(self) -> None:
        """Carry out what hangs on the write; called once, just before it is committed."""
        for settlement in self.settlements:
            settlement()

    def named(self) -> str:
        """Return the name that refusals show: of an object yet to be named its prefix."""
        metadata = (self.obj or {}).get("metadata") or {}
        return self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"


class AdmissionPhases(Protocol):
    """The chain that every write passes: first what changes, then what judges. Both raise ``ApiError`` to refuse."""

    def mutate(self, store: Store, attributes: AdmissionAttributes) -> None:
        """The first phase, before validation."""
        ...

    def validate(self, store: Store, attributes: AdmissionAttributes) -> None:
        """The second phase, after validation, before the commit."""
        ...


class NoAdmission:
    """A chain without plugins."""

    def mutate(self, store: Store, attributes: AdmissionAttributes) -> None:
        """Change nothing."""

    def validate(self, store: Store, attributes: AdmissionAttributes) -> None:
        """Refuse nothing."""


class WebhookCall(Struct, frozen=True):
    """A webhook to be asked: its name and clientConfig, the AdmissionReview, and how long it may take."""

    name: str
    client: Mapping[str, Any]
    review: Mapping[str, Any]
    timeout_s: int

    @property
    def url(self) -> str:
        """The URL that is called, as messages show it."""
        service = self.client.get("service")
        if service is None:
            base = str(self.client.get("url", ""))
            return f"{base}{'&' if '?' in base else '?'}timeout={self.timeout_s}s"
        path = service.get("path") or "/"
        host = f"{service['name']}.{service['namespace']}.svc:{service.get('port', 443)}"
        return f"https://{host}{path}?timeout={self.timeout_s}s"


class WebhookError(Exception):
    """A webhook gave no answer; ``is_call`` unless it gave one that is none."""

    def __init__(self, text: str, *, is_call: bool = True) -> None:
        super().__init__(text)
        self.is_call = is_call


class WebhookPort(Protocol):
    """How webhooks are reached: over HTTPS, or in process."""

    async def review(self, call: WebhookCall) -> Any:
        """Return the AdmissionReview that the webhook answers, as JSON.

        Raises ``WebhookError``.
        """
        ...


class PendingCallsError(Exception):
    """A request needs answers from outside, each under a key; nothing was changed yet."""

    def __init__(self, calls: Mapping[Hashable, Callable[[], Awaitable[Any]]]) -> None:
        super().__init__("a request waits for an answer from outside")
        self.calls = calls


async def answered(read: Callable[[], T]) -> T:
    """Return what a read finds, begun anew each time that somebody outside had to be asked (who keeps the answers)."""
    while True:
        try:
            return read()
        except PendingCallsError as pending:
            await asyncio.gather(*(call() for call in pending.calls.values()))


async def completed(write: Callable[[WriteRequest], T], request: WriteRequest) -> T:
    """Return the result of a write, begun anew each time that somebody outside had to be asked."""
    begun, long_work = len(request.warnings), LONG_WORK.get()
    while True:
        try:
            if long_work is None:
                return write(request)
            with long_work.trying():
                return write(request)
        except LongWorkPendingError as pending:
            assert long_work is not None
            try:
                await long_work.do(pending)
            except PendingCallsError as calls:
                await _ask(calls, request)
        except PendingCallsError as calls:
            await _ask(calls, request)
        del request.warnings[begun:]


async def _ask(pending: PendingCallsError, request: WriteRequest) -> None:
    assert request.answers is not None
    answers = await asyncio.gather(*(call() for call in pending.calls.values()))
    request.answers.update(zip(pending.calls, answers, strict=True))
