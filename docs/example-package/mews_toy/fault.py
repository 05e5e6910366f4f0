"""The fault toy-slow-reads: every reading of the chassis takes longer, and is answered twice as late while it lasts."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class SlowReads:
    """The fields are what a scenario may say of it: ``{kind: toy-slow-reads, extra_s: 2}``."""

    extra_s: float = 1.0

    kind: ClassVar[str] = "toy-slow-reads"
    sits_in: ClassVar[str] = "chassis"  # or host: see mews/emulator/host/faults
    on: ClassVar[tuple[str, ...]] = ("read",)  # the operations that it looks at: attach, detach, read
    count: ClassVar[int | None] = None  # how often it strikes unless told; None: until it is cleared
    may_break: ClassVar[tuple[int, ...]] = ()  # the numbers of the invariants that it may break
    grace_s: ClassVar[float] = 0.0  # and how long its effect lasts: seconds

    def strike(self, operation, bench):
        """Change an operation that just begins; True: it was struck."""
        operation.last(2 * (operation.due_s - operation.start_s) + self.extra_s)
        return True
