"""Judges chassis in this process: our own emulator with a fault, and small servers that are wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mews.emulator.hardware.chassis_profiles import parse_profile
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import Clause
from mews.harness.conformance.client import ChassisTarget, Client, HttpReply
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.errors import ListingUnavailableError, MalformedError, NotJudgedError
from mews.harness.conformance.expectations import Quirks
from mews.harness.conformance.judge import ClauseJudge, ClauseResult
from mews.harness.conformance.table import Limits, Units
from mews.harness.conformance.trial import round_trip

FIXTURES = Path(__file__).parents[3] / "fixtures" / "hardware"
DAY = date(2026, 1, 1)
BRISK = Limits(attach_s=2.0, detach_s=2.0, read_s=2.0, settle_s=0.4, outage_s=30.0, quiet_s=0.5)
"""For chassis that answer at once."""
IDLE = ("000100", "000200")


def hardware(profile: Any = "instant", name: str = "demo") -> Hardware:
    loaded = load_hardware(FIXTURES / f"{name}.yaml")
    chassis = tuple(replace(spec, profile=parse_profile(profile, spec.name)) for spec in loaded.chassis)
    return replace(loaded, chassis=chassis)


@contextmanager
def served(
    profile: Any = "instant", speed: float = 1.0, *, name: str = "demo", password: str | None = None, tls: Any = None
) -> Iterator[ChassisServer]:
    server = ChassisServer(hardware(profile, name), context=EmulationContext(speed=speed), password=password, tls=tls)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def url_of(server: ChassisServer, dialect: str) -> str:
    return str(server.ready()["chassis"]["A"][dialect])


def ca_of(server: ChassisServer) -> str:
    return str(server.ready()["ca"])


def ports(server: ChassisServer) -> dict[str, str | None]:
    return {device: row["port"] for device, row in server.rack.table()["A"].items()}


def judged(
    url: str,
    dialect: str,
    *,
    limits: Limits = BRISK,
    changes: bool = True,
    patience_s: float = 4.0,
    devices: Any = IDLE,
    credentials: Any = None,
    ca: str | None = None,
    mangle: Callable[[HttpReply], HttpReply] = lambda reply: reply,
    only: Callable[[Clause], bool] = lambda clause: True,
    listed: Callable[[], None] = lambda: None,
    tries: bool = True,
) -> dict[str, ClauseResult]:
    """Clause -> result, as a run with ``--allow-changes`` finds them; ``listed`` is called once devices are known;
    ``tries``: one device is moved there and back first."""
    client = Mangled(ChassisTarget(url, ca, patience_s=patience_s), mangle)
    client.credentials = credentials
    return judged_by(
        client, dialect, limits=limits, changes=changes, devices=devices, only=only, listed=listed, tries=tries
    )


def judged_by(
    client: Client,
    dialect: str,
    *,
    limits: Limits = BRISK,
    changes: bool = True,
    devices: Any = IDLE,
    only: Callable[[Clause], bool] = lambda clause: True,
    listed: Callable[[], None] = lambda: None,
    units: Units | None = None,
    tries: bool = True,
) -> dict[str, ClauseResult]:
    """The same over a client that is there."""
    suite = clauses_of(dialect)
    face = suite.face(client)
    bench = ClauseContext(client, face, limits=limits, home=suite.home, units=units)
    with suppress(MalformedError, ListingUnavailableError, NotJudgedError):
        bench.read()
    listed()
    if changes:
        bench.allow(devices, ("1", "2", "3"), None)
        if tries:
            round_trip(bench)
    judge = ClauseJudge(bench, Quirks(limits=limits), (), DAY, changes)
    ordered = sorted(filter(only, suite.clauses), key=lambda clause: clause.last)
    try:
        return {clause.id: judge.judge(clause) for clause in ordered}
    finally:
        face.close()


class Mangled(Client):
    """Every reply is changed on its way."""

    def __init__(self, address: ChassisTarget, mangle: Callable[[HttpReply], HttpReply]) -> None:
        super().__init__(address)
        self.mangle = mangle

    def send(self, *arguments: Any, **named: Any) -> HttpReply:
        return self.mangle(super().send(*arguments, **named))


def broken(results: Mapping[str, ClauseResult]) -> set[str]:
    return {clause for clause, result in results.items() if not result.good}
