"""Faults that strike requests to the API."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar, Literal

from mews.harness.api_faults.bounds import LONGEST_S, RECOVERY_S, Delayed, check_within
from mews.harness.api_faults.plans import NO_ANSWER, ApiFailure, ApiRequest, RequestPlan

READS = ("get", "list", "watch")
WRITES = ("create", "update", "patch", "delete", "deletecollection")
VERBS = (*READS, *WRITES)
"""Verbs of requests, as RBAC has them; a binding is the ``create`` of ``pods/binding``."""


@dataclass(frozen=True, slots=True)
class ConflictAnswer:
    """Updates and patches are answered with 409 Conflict: as far as the component knows, somebody else has changed the
    object."""

    resource: str | None = None

    kind: ClassVar[str] = "conflict"
    on: ClassVar[tuple[str, ...]] = ("update", "patch")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S

    def strike(self, request: ApiRequest) -> RequestPlan:
        """Refuse it; nothing is changed."""
        text = (
            f'Operation cannot be fulfilled on {request.resource} "{request.name}": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )
        return RequestPlan(is_forwarded=False, failure=ApiFailure(409, "Conflict", text))


@dataclass(frozen=True, slots=True)
class BusyAnswer:
    """Requests are answered with 429 and ``Retry-After: retry_after_s``, as by priority and fairness when the server is
    busy."""

    retry_after_s: int = 1
    resource: str | None = None

    kind: ClassVar[str] = "too-many-requests"
    on: ClassVar[tuple[str, ...]] = VERBS
    count: ClassVar[int | None] = 5
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S

    def __post_init__(self) -> None:
        check_within(self.kind, "retry_after_s", self.retry_after_s, least=1, most=LONGEST_S)

    def strike(self, request: ApiRequest) -> RequestPlan:
        """Refuse it; nothing is changed."""
        text = "the server has received too many requests and has asked us to try again later"
        failure = ApiFailure(429, "TooManyRequests", text, self.retry_after_s)
        return RequestPlan(is_forwarded=False, failure=failure)


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Requests are answered with HTTP 5xx; a write took effect (``when: after``) or did not (``before``)."""

    status: Literal[500, 503, 504] = 500
    when: Literal["before", "after"] = "before"
    resource: str | None = None

    kind: ClassVar[str] = "server-error"
    on: ClassVar[tuple[str, ...]] = VERBS
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S

    def strike(self, request: ApiRequest) -> RequestPlan:
        """Answer with the status."""
        reason = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}[self.status]
        failure = ApiFailure(self.status, reason, "etcdserver: request timed out")
        return RequestPlan(is_forwarded=self.when == "after", failure=failure)


@dataclass(frozen=True, slots=True)
class LostAnswer:
    """The connection ends without an answer; a write took effect (``when: after``) or did not (``before``)."""

    when: Literal["before", "after"] = "after"
    resource: str | None = None

    kind: ClassVar[str] = "lost-answer"
    on: ClassVar[tuple[str, ...]] = VERBS
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S

    def strike(self, request: ApiRequest) -> RequestPlan:
        """Hang up."""
        failure = ApiFailure(NO_ANSWER, message="the connection ended before an answer")
        return RequestPlan(is_forwarded=self.when == "after", failure=failure)


@dataclass(frozen=True, slots=True)
class RequestTimeout:
    """Nothing comes back for ``hold_s``, then the connection ends; a write took effect before (``when: after``) or
    never does (``before``)."""

    hold_s: float = 30.0
    when: Literal["before", "after"] = "after"
    resource: str | None = None

    kind: ClassVar[str] = "request-timeout"
    on: ClassVar[tuple[str, ...]] = VERBS
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()

    def __post_init__(self) -> None:
        check_within(self.kind, "hold_s", self.hold_s, least=0, most=LONGEST_S)

    @property
    def grace_s(self) -> float:
        """While the request hangs, and a while after."""
        return RECOVERY_S + self.hold_s

    def strike(self, request: ApiRequest) -> RequestPlan:
        """Hold it, and hang up."""
        failure = ApiFailure(NO_ANSWER, message=f"no answer within {self.hold_s:g} s")
        return RequestPlan(hold_s=self.hold_s, is_forwarded=self.when == "after", failure=failure)


@dataclass(frozen=True, slots=True)
class SlowRequest(Delayed):
    """Requests reach the server ``by_s`` late."""

    kind: ClassVar[str] = "slow-request"
    on: ClassVar[tuple[str, ...]] = VERBS
    count: ClassVar[int | None] = 1

    def strike(self, request: ApiRequest) -> RequestPlan:
        """Hold it."""
        return RequestPlan(hold_s=self.by_s)


@dataclass(frozen=True, slots=True)
class ExpiredToken:
    """The component's token has expired: every request is answered with 401 until the fault ends; open watches stay
    open."""

    kind: ClassVar[str] = "expired-token"
    on: ClassVar[tuple[str, ...]] = VERBS
    count: ClassVar[int | None] = None
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S

    def strike(self, request: ApiRequest) -> RequestPlan:
        """Refuse it; nothing is changed."""
        return RequestPlan(is_forwarded=False, failure=ApiFailure(401, "Unauthorized", "Unauthorized"))


@dataclass(frozen=True, slots=True)
class FrozenApi:
    """Nothing is answered and no event comes until the fault ends; then all of it goes on. A client that gives up
    before takes its request with it."""

    resource: str | None = None

    kind: ClassVar[str] = "frozen-api"
    on: ClassVar[tuple[str, ...]] = VERBS
    count: ClassVar[int | None] = None
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S

    def strike(self, request: ApiRequest) -> RequestPlan:
        """Hold it as long as the fault is there."""
        return RequestPlan(hold_s=float("inf"))

    def lag_s(self, rng: random.Random) -> float:
        """Return it as long as it is there."""
        return float("inf")
