"""Puts lines before every invariant, asks the excuses, and keeps what is left: no I/O, so that a test can feed it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mews.harness.invariants.agreement import Agreement
from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.in_use import InUse
from mews.harness.invariants.progress import Progress
from mews.harness.invariants.scene import Invariant, Scene
from mews.harness.invariants.scheduled import Books, Scheduled
from mews.harness.invariants.single_holder import SingleHolder
from mews.harness.invariants.single_port import SinglePort
from mews.harness.invariants.unattached import Unattached
from mews.harness.invariants.verdict import Breach, Violation
from mews.harness.invariants.visible import Visible
from mews.harness.invariants.watches import Watches
from mews.harness.journal import Line
from mews.harness.watch_feed import Sight

LAWS: dict[int, Callable[[], Invariant]] = {
    1: SinglePort,
    2: InUse,
    3: SingleHolder,
    4: Visible,
    5: Unattached,
    6: Agreement,
}
"""The invariants over journal lines. 7, 8 and 9 look at watches."""


class Judge:
    """``hear`` lines in their order, ``see`` watch events; ``violations`` grow as they are found, each finding once."""

    def __init__(
        self, bounds: Bounds, *, schedulers: Sequence[str] = (), tell: Callable[[Violation], None] = lambda _: None
    ) -> None:
        self.scene = Scene(bounds)
        self.violations: list[Violation] = []
        self._laws = [make() for make in LAWS.values()]
        self._agreement = next(law for law in self._laws if law.number == 6)
        self._watches = Watches()
        self._scheduled = Scheduled(schedulers)
        self._progress = Progress()
        self._tell = tell
        self._found: set[tuple[int, tuple[str, ...]]] = set()

    def hear(self, line: Line) -> None:
        """Judge one journal line."""
        if line.layer == "invariant":
            return
        self.scene.excuses.hear(line)
        self.scene.world.hear(line)
        for law in self._laws:
            self._take(law, law.hear(line, self.scene), line.t)
        self.pass_time(line.t)

    def pass_time(self, t: float) -> None:
        """Judge what should have happened by now."""
        for law in self._laws:
            self._take(law, law.tick(t, self.scene), t)

    def see(self, sight: Sight, t: float) -> None:
        """Judge one event of a watch."""
        self._take(self._watches, self._watches.see(sight), t)

    def compare(self, breaches: Iterable[Breach], t: float) -> None:
        """Take what comparing a last list with a watch found."""
        self._take(self._watches, breaches, t)

    def look(self, t: float, books: Books) -> None:
        """Judge whether what fits was scheduled, and whether training jobs get on."""
        self._take(self._scheduled, self._scheduled.look(t, books, self.scene), t)
        self._take(self._progress, self._progress.look(t, books, self.scene), t)

    def conclude(self, breaches: Iterable[Breach], t: float) -> None:
        """Take what the last look at pod resources and the chassis found."""
        self._take(self._agreement, breaches, t)

    def _take(self, law: Invariant | Watches | Scheduled | Progress, breaches: Iterable[Breach], t: float) -> None:
        for breach in breaches:
            finding = (law.number, breach.key)
            if finding in self._found:
                continue
            self._found.add(finding)
            if not self.scene.excuses.excused(law.number, t, breach.device):
                violation = Violation(law.number, law.name, breach.what, t, breach.first)
                self.violations.append(violation)
                self._tell(violation)
