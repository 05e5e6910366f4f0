"""An operation of a chassis: begun, due at some time, settled when the chassis is next looked at."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct, field

from mews.emulator.chassis.errors import RefusalError
from mews.emulator.chassis.table import DeviceRow


class OperationKind(StrEnum):
    """What a chassis can be asked."""

    ATTACH = "attach"
    DETACH = "detach"
    READ = "read"


class OperationOutcome(StrEnum):
    """How the client is answered."""

    REPLY = "reply"
    DROPPED = "dropped"
    ERROR = "error"


class Answer(Struct, frozen=True):
    """What a client is answered to an operation.

    For a REPLY to a write, ``ok`` is what the box says and ``truth`` what happened; ``refusal`` says why not.
    ``lie`` marks a reply that is wrong on purpose: a dialect without a boolean cannot express it and tells the truth.
    For a REPLY to a read, ``rows`` is the listing. An ERROR has an HTTP ``status``.
    """

    outcome: OperationOutcome
    ok: bool = True
    truth: bool = True
    lie: bool = False
    refusal: RefusalError | None = None
    rows: tuple[DeviceRow, ...] = ()
    status: int = 200


class Operation(Struct):
    """One operation. ``due_s``: the management CPU is done and the table changes; ``answer_s``: the client hears of it.

    All times are emulated seconds. Both may still change (a reboot cuts it short), so read them again after waiting.
    The lower half is what faults write when the operation begins.
    """

    number: int
    kind: OperationKind
    device: str
    port: str | None
    begun_s: float
    start_s: float
    due_s: float
    answer_s: float
    refusal: RefusalError | None = None
    settled: bool = False
    rows: tuple[DeviceRow, ...] = ()

    applies: bool = True
    claims: bool | None = None
    lies: bool = False
    says: bool | None = None
    """The only lie that ``lies`` may tell; None: either."""
    outcome: OperationOutcome = OperationOutcome.REPLY
    status: int = 200
    ends_login: bool = False
    """The tokens of all clients end with it, in dialects that give some."""
    layout_ends: str = ""
    """How the layout that it belongs to ends after it, in dialects that apply layouts."""
    views: list[Callable[[tuple[DeviceRow, ...]], tuple[DeviceRow, ...]]] = field(default_factory=list)
    before: list[Callable[[], None]] = field(default_factory=list)
    after: list[Callable[[], None]] = field(default_factory=list)

    def last(self, seconds: float) -> None:
        """Let it take that long from its start on."""
        self.due_s = self.start_s + max(seconds, 0.0)
        self.answer_s = max(self.due_s, self.start_s)

    def refuse(self, refusal: RefusalError) -> None:
        """Let the operation have no effect and be answered with this refusal, unless something else refused it
        before."""
        if self.refusal is None:
            self.refusal = refusal

    def answer(self) -> Answer:
        """Return what the client gets, once settled."""
        truth = self.refusal is None and self.applies
        claim = truth if self.claims is None else self.claims
        lies = self.lies and self.says is not claim
        return Answer(
            outcome=self.outcome,
            ok=claim is not lies,
            truth=truth,
            lie=lies,
            refusal=self.refusal,
            rows=self.rows,
            status=self.status,
        )
