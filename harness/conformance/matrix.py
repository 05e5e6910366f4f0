"""Judges chassis of our own that are wrong on purpose: which clause names which wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.hardware.chassis_profiles import parse_profile
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.emulator.wrongs.wrong import Wrong
from mews.harness.conformance.client import ChassisTarget
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.expectations import Quirks
from mews.harness.conformance.judge import OF_GRADE
from mews.harness.conformance.report.outcome import ConformanceOutcome
from mews.harness.conformance.run import Order, conform
from mews.harness.conformance.table import Limits
from mews.harness.package import room

LONG_S = 3.0
"""Of an operation that goes on after its first answer; in emulated time, which is quick."""
SPEED = 10.0
IDLE = ("000100", "000200")
PASSWORD = "matrix"
BRISK = Limits(attach_s=6.0, detach_s=6.0, read_s=6.0, settle_s=0.4, outage_s=10.0, quiet_s=0.3)
"""For a chassis that answers at once, on a machine that has much else to do."""


class Judged(Struct, frozen=True):
    """One wrong in one dialect. ``clauses``: those that do not hold, may and should included, each with its reason;
    ``left``: whether a device is not where it was; ``reported``: whether the run reports it."""

    wrong: Wrong
    dialect: str
    changes: bool
    clauses: tuple[tuple[str, str], ...]
    outcome: ConformanceOutcome
    left: bool
    reported: bool

    @property
    def named(self) -> str:
        """By one clause, by several, or not."""
        return ("not", "by one")[len(self.clauses)] if len(self.clauses) < 2 else "by several"


def judge_wrong(wrong: Wrong, dialect: str, *, changes: bool, today: date, budget_s: float = 60.0) -> Judged:
    """Serve a chassis with that wrong in this process, and judge it."""
    with serving((wrong,), dialect) as server, tempfile.TemporaryDirectory(prefix="mews-matrix-") as folder:
        free(server)
        before = places(server)
        ready = server.ready()
        order = Order(
            ChassisTarget(ready["chassis"]["A"][dialect], ready["ca"], patience_s=10.0),
            dialect,
            credentials=("admin", PASSWORD) if clauses_of(dialect).login else None,
            changes=changes,
            quirks=Quirks(limits=BRISK),
            restore_file=Path(folder) / "restore.json",
            budget_s=budget_s,
            guarded=False,
        )
        outcome = conform(order, today, lambda result: None)
        left = places(server) != before
    bad = [result for result in outcome.results if result.verdict in OF_GRADE.values()]
    clauses = tuple((result.clause.id, result.reason) for result in bad)
    return Judged(wrong, dialect, changes, clauses, outcome, left, bool(outcome.restored or outcome.others))


@contextmanager
def serving(wrongs: Sequence[Wrong], dialect: str) -> Iterator[ChassisServer]:
    """Provide the demo's chassis, quick and behind these wrongs."""
    loaded = load_hardware(room("fixtures") / "hardware" / "demo.yaml")
    lasting = any(wrong.lasting for wrong in wrongs)
    profile = {"attach": LONG_S, "detach": LONG_S} if lasting else "instant"
    chassis = tuple(replace(spec, profile=parse_profile(profile, spec.name)) for spec in loaded.chassis)
    server = ChassisServer(
        replace(loaded, chassis=chassis),
        dialects=(dialect,),
        password=PASSWORD,
        wrongs=wrongs,
        context=EmulationContext(speed=SPEED),
    )
    server.start()
    try:
        yield server
    finally:
        server.stop()


def free(server: ChassisServer) -> None:
    """Take the first devices off their ports: those are idle."""
    with server.rack.box("A") as box:
        for device in IDLE:
            box.edits.edit(device, None, server.rack.clock.now())


def places(server: ChassisServer) -> dict[str, str | None]:
    """Device -> port of the first chassis."""
    return {device: row["port"] for device, row in server.rack.table()["A"].items()}


def judge_all(
    wrongs: Sequence[Wrong],
    dialects: Sequence[str],
    *,
    changes: bool,
    today: date,
    on_judged: Callable[[Judged], None] = lambda judged: None,
) -> list[Judged]:
    """Return every wrong in each of these dialects that it can be played in."""
    found = []
    for wrong in wrongs:
        for dialect in wrong.dialects:
            if dialect in dialects:
                found.append(judge_wrong(wrong, dialect, changes=changes, today=today))
                on_judged(found[-1])
    return found
