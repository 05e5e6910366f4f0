"""The rules about the table that all dialects share (contract chassis.md 1), as clauses of each one's own section."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from mews.harness.conformance.at_once import at_once
from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import MUST, SHOULD, Clause, must, noticed
from mews.harness.conformance.errors import NotJudgedError, UnmetClauseError
from mews.harness.conformance.table import port_text

UNKNOWN_DEVICE = "mews-no-such-device"
GPU_UUID = re.compile(r"(GPU-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""As NVML writes a GPU's: RFC 9562 after a word."""


def moving(
    section: int,
    *,
    attach: str,
    detach: str,
    unknown_port: str,
    free: Sequence[Clause] = (),
    held: Sequence[Clause] = (),
    retried: Sequence[Clause] = (),
) -> tuple[Clause, ...]:
    """Clauses that move idle devices. ``attach``, ``detach``: the dialect's requests, for the references;
    ``unknown_port``: a host port, in the dialect's own form, that no chassis has.

    They are in an order in which each finds a device as the one before leaves it, free or attached: of a chassis whose
    moves take long as many are judged as can be. So are those that a dialect adds: ``free`` want a free device,
    ``held`` an attached one, and ``retried`` one, too, once it is known what an attach that is made again does."""
    at = f"chassis.md {section}"
    return (
        Clause(
            f"{section}.unknown-port",
            "an attach to a host port that the chassis lacks is refused",
            f"chassis.md 1, 3 (gaps, not to be copied: any hostport accepted): {attach}",
            _unknown_port(unknown_port),
            changes=True,
        ),
        Clause(
            f"{section}.unknown-device",
            "a move of an unknown device is refused and changes nothing",
            f"{at}: {attach}, {detach}",
            _unknown_device,
            changes=True,
        ),
        *free,
        Clause(
            f"{section}.held",
            "an attach of an attached device is refused: moving is detach, then attach",
            f"chassis.md 1: {attach}",
            _held,
            changes=True,
        ),
        *held,
        Clause(
            f"{section}.retry-detach",
            "a detach that is made again, its answer being lost, leaves the device on no port",
            f"chassis.md 1, 2: connections drop: {detach}",
            _retry_detach,
            changes=True,
        ),
        Clause(
            f"{section}.retry",
            "an attach that is made again, its answer being lost, leaves the device on its port, listed once",
            f"chassis.md 1, 2: connections drop: {attach}",
            _retry,
            changes=True,
            needs=(f"{section}.held",),
        ),
        *retried,
        Clause(
            f"{section}.one-winner",
            "of two simultaneous attaches of one device at most one is answered as done, and the device is on one port",
            f"chassis.md 1, 2 (operations on one chassis are serialised), 3 (no lock): {attach}",
            _one_winner,
            changes=True,
            needs=(f"{section}.held", f"{section}.retry"),
        ),
    )


def reading(section: int, *, read: str) -> tuple[Clause, ...]:
    """Clauses about a listing's content that the plain dialects share."""
    return (
        Clause(
            f"{section}.uuid-form",
            "a GPU's UUID has the form that NVML gives it",
            f"chassis.md 1, 2: {read}",
            _uuid_form,
            needs=(f"{section}.strings",),
            grade=SHOULD,
        ),
    )


def bare_delete(section: int, *, detach: str) -> Clause:
    """Return the clause of a dialect whose DELETE has a body."""
    return Clause(
        f"{section}.delete-body",
        "a DELETE without a body moves no device",
        f"chassis.md {section}: {detach}",
        _bare_delete,
        changes=True,
    )


def watched(section: int, *, attach: str, detach: str, read: str) -> tuple[Clause, ...]:
    """Clauses about what was noticed on the way."""
    at = f"chassis.md {section}"

    def last(word: str, title: str, reference: str, *topics: str, kind: str = "", grade: str = MUST) -> Clause:
        check = noticed(*topics, kind=kind)
        changes = kind not in ("", "read")
        return Clause(f"{section}.{word}", title, reference, check, changes=changes, last=True, grade=grade)

    return (
        last(
            "attach",
            "an attach of an idle device takes effect where it says so",
            f"{at}: {attach}",
            "attach",
            kind="attach",
        ),
        last("detach", "a detach takes effect where it says so", f"{at}: {detach}", "detach", kind="detach"),
        last(
            "truth-attach",
            "an attach that is answered as failed did not happen, one as done did",
            f"{at}: {attach}",
            "truth-attach",
            kind="attach",
        ),
        last(
            "truth-detach",
            "a detach that is answered as failed did not happen, one as done did",
            f"{at}: {detach}",
            "truth-detach",
            kind="detach",
        ),
        last("uuid", "a device keeps its UUID when it moves", "chassis.md 1: device", "uuid", kind="attach"),
        last(
            "alone", "a move changes the asked device only", "chassis.md 1: device lookup table", "alone", kind="attach"
        ),
        last("fresh", "a listing shows what was acknowledged before", f"{at}: {read}", "fresh", kind="attach"),
        last("complete", "every listing names every device", f"{at}: {read}", "complete", kind="read"),
        last("lost", "no device disappears", "chassis.md 1: device lookup table", "lost", kind="read"),
        last("form", "every reply to a read is of the dialect's form", f"{at}: {read}", "form"),
        last("answers", "every request is answered, no connection is dropped", f"{at}; 2: connections drop", "answers"),
        last("write-access", "moves need no further credentials", f"{at}: {attach}, {detach}", "access"),
        last("whole", "every reply is as long as it says", f"{at}: {read}; RFC 9112, 8", "whole"),
        last("coding", "no body is in a coding that was not asked for", f"{at}: {read}; RFC 9110, 12.5.3", "coding"),
        last("server-errors", "no request is answered with HTTP 5xx", at, "server-errors"),
        last("busy", "HTTP 429 says when to come back", f"{at}; RFC 6585, 4", "busy", grade=SHOULD),
        last("clock", "a Date is one of HTTP and of this day", f"{at}; RFC 9110, 6.6.1", "clock", grade=SHOULD),
    )


def _uuid_form(bench: ClauseContext) -> None:
    own = bench.units.uuid
    form, shown = (re.compile(own), own) if own else (GPU_UUID, "GPU-8-4-4-4-12")
    for device, row in bench.read().rows.items():
        must(not row.uuid or form.fullmatch(row.uuid), f"device {device}: UUID {row.uuid!r}: must be {shown}")


def _bare_delete(bench: ClauseContext) -> None:
    """An attached device is there to be lost; one that is another's is put back at the end."""
    device, _ = bench.attached()
    before = bench.read()
    bench.ask(device, None, lambda: bool(bench.face.bare_delete()))
    after = bench.read()
    gone = [each for each, row in before.rows.items() if row.port is not None and after.port(each) != row.port]
    bench.touched(*gone)
    must(not gone, f"a DELETE without a body took {', '.join(gone)} off the port that it was on")


def _unknown_device(bench: ClauseContext) -> None:
    port = bench.ports[0]
    before = set(bench.read().rows)
    for what, target in (("attach of an unknown device", port), ("detach of an unknown device", None)):

        def ask(target: str | None = target) -> bool:
            face = bench.face
            return bool(face.detach(UNKNOWN_DEVICE) if target is None else face.attach(UNKNOWN_DEVICE, target))

        done = bench.refused(UNKNOWN_DEVICE, target, ask, what, judged=False)
        if done and bench.ledger.of("truth-detach" if target is None else "truth-attach"):
            raise NotJudgedError("its answers are not reliable for any device")
        must(not done, f"{what}: answered as done")
    new = set(bench.read().rows) - before
    if new:
        raise UnmetClauseError(f"a move of an unknown device brought {', '.join(sorted(new))} into the listing")


def _unknown_port(port: str) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        if port in bench.ports:
            raise NotJudgedError(f"this chassis has a host port {port}")
        device = bench.free()
        bench.refused(device, port, lambda: bench.face.attach(device, port), f"attach to unknown host port {port!r}")

    return check


def _held(bench: ClauseContext) -> None:
    """An attach to the port that the device is on already is what other clauses are about."""
    device, port = bench.attached()
    target = next((other for other in bench.ports if other != port), None)
    if target is None:
        raise NotJudgedError(f"no other host port than {port} is known; name one with --port")
    bench.refused(device, target, lambda: bench.face.attach(device, target), "attach of an attached device")


def _one_winner(bench: ClauseContext) -> None:
    """Two winners in one round of two may be an attach that was answered as done and was not; in both it is none."""
    device = bench.free()
    first, second = (bench.ports * 2)[:2]
    both = [_race(bench, device, first, second) for _ in range(bench.often(2))]
    if all(both):
        raise UnmetClauseError(
            f"device {device}: attaches to {first} and {second} at the same time were both answered as done"
        )
    if any(both):
        bench.note("attach", f"of attaches of device {device} to {first} and {second} both were answered as done, once")


def _retry(bench: ClauseContext) -> None:
    """A client whose connection drops cannot know whether it was heard, and asks again. Whether that is answered as
    done or refused, it is not carried out a second time."""
    device, port = bench.free(), bench.ports[0]
    before = bench.move_unanswered(device, port)
    if before.port(device) != port:
        raise NotJudgedError(f"an attach whose answer is not read does not take effect: device {device} is on no port")
    claim = bench.ask(device, port, lambda: bool(bench.face.attach(device, port)))
    after = bench.read()
    bench.compare_others(device, before, after)
    what = f"the attach of device {device} to port {port!r} was {_ANSWERS[claim]}"
    if after.port(device) != port:
        bench.touched(device)
        raise UnmetClauseError(f"{what}: the device is on {port_text(after.port(device))} now")
    must(device not in after.twice or device in before.twice, f"{what}: the device is listed twice now")


def _retry_detach(bench: ClauseContext) -> None:
    """Likewise: the device is free, whatever the answer to the second request is."""
    device, port = bench.attached()
    before = bench.move_unanswered(device, None)
    if before.port(device) is not None:
        raise NotJudgedError(
            f"a detach whose answer is not read does not take effect: device {device} is on port {port!r}"
        )
    again = getattr(bench.face, "detach_again", None)
    claim = bench.ask(device, None, lambda: bool(bench.face.detach(device) if again is None else again(device, port)))
    after = bench.read()
    bench.compare_others(device, before, after)
    what = f"the detach of device {device} from port {port!r} was {_ANSWERS[claim]}"
    if after.port(device) is not None:
        bench.saw(device, after.port(device))
        raise UnmetClauseError(f"{what}: the device is on {port_text(after.port(device))} now")


_ANSWERS: Mapping[bool | None, str] = {
    claim: f"made again after its answer was lost, and {answered}"
    for claim, answered in {True: "answered as done", False: "refused", None: "not answered"}.items()
}


def _race(bench: ClauseContext, device: str, first: str, second: str) -> bool:
    """Return whether both of two simultaneous attaches were answered as done; the device is free again afterwards."""
    before = bench.read()
    bench.time_for("attach", 2)
    claims = at_once(
        lambda: bench.ask(device, first, lambda: bench.face.attach(device, first), alone=False),
        lambda: bench.ask(device, second, lambda: bench.face.attach(device, second), alone=False),
    )
    after = bench.seen_on_some_port(device) if True in claims else bench.read()
    bench.compare_others(device, before, after)
    where = after.port(device)
    if claims.count(True) and where is None:
        bench.note("attach", f"one of two attaches was answered as done: device {device} is on no port")
    if where not in (first, second, None):
        raise UnmetClauseError(f"device {device}: asked for {first} and {second}, is on {where}")
    bench.move(device, None)
    return claims == [True, True] and where is not None


def one_device_each(uuids: Mapping[str, str]) -> None:
    """Device -> UUID, "" where it has none: two with one UUID are one device that is listed twice. Raises
    UnmetClauseError."""
    devices: dict[str, str] = {}
    for device, uuid in uuids.items():
        other = devices.setdefault(uuid, device) if uuid else device
        must(other == device, f"{other} and {device} are listed with the same UUID {uuid}")
