"""Turns a clause, a bench and what is expected into a result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from msgspec import Struct, field

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import MAY, MUST, SHOULD, Clause
from mews.harness.conformance.errors import (
    HttpServerError,
    ListingUnavailableError,
    MalformedError,
    NoAnswerError,
    NotJudgedError,
    OutOfTimeError,
    UnmetClauseError,
)
from mews.harness.conformance.exchange import Exchange
from mews.harness.conformance.expectations import Quirks, Waiver

PASSED, FAILED, QUIRK, WAIVED, SKIPPED, ERROR = "passed", "failed", "quirk", "waived", "skipped", "error"
WARNING, NOTED = "warning", "noted"
VERDICTS = (PASSED, FAILED, WARNING, NOTED, QUIRK, WAIVED, SKIPPED, ERROR)
"""warning, noted: does not hold, and only should or may; quirk, waived: does not hold, as expected; skipped: could not
be judged; error: a waiver for it has expired."""
OF_GRADE = {MUST: FAILED, SHOULD: WARNING, MAY: NOTED}
BAD = (FAILED, ERROR)
TOPIC_OF = {"write-access": "access", "monitor": "task"}
"""Word of a clause -> what it is noted as, where that is another word."""
READ_ONLY = "needs --allow-changes"
OUT_OF_TIME = "not judged before the time was over: give more with --budget"


class ClauseResult(Struct, frozen=True):
    """One clause's verdict, why, and what was said on the wire."""

    clause: Clause
    verdict: str
    reason: str = ""
    note: str = ""
    seconds: float = 0.0
    exchanges: tuple[Exchange, ...] = ()
    grade: str = MUST
    evidence: Exchange | None = None
    """The one exchange that shows why it does not hold, where there is one."""

    @property
    def good(self) -> bool:
        """Whether it speaks for the chassis, or at least not against it."""
        return self.verdict not in BAD

    def as_dict(self) -> dict[str, Any]:
        """Return them for JSON."""
        return {
            "clause": self.clause.id,
            "title": self.clause.title,
            "reference": self.clause.reference,
            "assumed": self.clause.assumed,
            "grade": self.grade,
            "verdict": self.verdict,
            "reason": self.reason,
            "note": self.note,
            "seconds": round(self.seconds, 3),
            "evidence": None if self.evidence is None else self.evidence.as_dict(),
            "exchanges": [exchange.as_dict() for exchange in self.exchanges],
        }


class ClauseJudge(Struct, frozen=True):
    """Judges clauses; ``today`` decides whether a waiver still holds."""

    bench: ClauseContext
    quirks: Quirks
    waivers: Sequence[Waiver]
    today: date
    changes: bool
    withheld: list[str] = field(default_factory=list)
    """Why no device can be moved though it was allowed; empty where one can."""
    grades: Mapping[str, str] = field(default_factory=dict)
    """Clause -> grade; must for any other."""
    off: Mapping[str, str] = field(default_factory=dict)
    """Clause -> why the profile has it not judged."""
    causes: dict[str, str] = field(default_factory=dict)
    """Clause -> the clause that was found not to hold and is why this one cannot be judged (itself, for that one)."""

    def judge(self, clause: Clause) -> ClauseResult:
        """Return one clause's result."""
        log, first, began_s = self.bench.client.log, len(self.bench.client.log), time.monotonic()
        if clause.id in self.off:
            return self._result(clause, SKIPPED, f"switched off by the profile: {self.off[clause.id]}", 0.0, ())
        if clause.changes and not self.changes:
            return self._result(clause, SKIPPED, READ_ONLY, 0.0, ())
        if clause.changes and (self.withheld or (self.bench.halted and not clause.last)):
            return self._result(clause, SKIPPED, self.bench.halted or self.withheld[0], 0.0, ())
        if self.bench.client.left_s() <= 0 and not clause.last:
            return self._result(clause, SKIPPED, OUT_OF_TIME, 0.0, ())
        cause = next((self.causes[needed] for needed in clause.needs if needed in self.causes), None)
        if cause is not None:
            self.causes[clause.id] = cause
            return self._result(clause, SKIPPED, f"{cause} does not hold", 0.0, ())
        self.bench.client.about, self.bench.borrowed = clause.id, ()
        verdict, reason = self._look(clause)
        self.bench.client.about = ""
        if verdict == FAILED:
            self.causes[clause.id] = clause.id
        exchanges = (*self.bench.borrowed, *log[first:])
        noticed = self._noticed(clause) if clause.last and verdict == FAILED else ()
        exchanges = noticed or exchanges
        reason = self.bench.client.hidden(reason)
        shown = self._evidence(reason, noticed[:2] or exchanges) if verdict == FAILED else None
        return self._result(clause, verdict, reason, time.monotonic() - began_s, exchanges, shown)

    def _evidence(self, reason: str, exchanges: Sequence[Exchange]) -> Exchange | None:
        """Return the last of these exchanges whose path the reason names, or of all; the last of these where it names
        none. A clause that looks at the moves of others shows the first of them."""
        for log in (exchanges, self.bench.client.log):
            named = [each for each in log if f" {each.path}:" in f" {reason}" or f" {each.path} " in f" {reason}"]
            if named:
                return named[-1]
        if exchanges:
            return exchanges[-1]
        return next((each for each in self.bench.client.log if each.method not in ("GET", "HEAD")), None)

    def _look(self, clause: Clause) -> tuple[str, str]:
        try:
            clause.check(self.bench)
        except UnmetClauseError as unmet:
            return FAILED, str(unmet)
        except MalformedError as error:
            self.bench.note("form", str(error))
            return SKIPPED if clause.changes or clause.last or clause.needs else FAILED, str(error)
        except OutOfTimeError:
            return SKIPPED, OUT_OF_TIME
        except (NotJudgedError, ListingUnavailableError) as error:
            return SKIPPED, str(error)
        except NoAnswerError as error:
            self.bench.note(error.topic, str(error))
            return SKIPPED, str(error)
        except HttpServerError as error:
            self.bench.note(error.topic, str(error))
            return SKIPPED, str(error)
        return PASSED, ""

    def _noticed(self, clause: Clause) -> tuple[Exchange, ...]:
        """Return the exchanges with which a clause about what was noticed on the way was first broken: the last write
        before it, and what showed it."""
        try:
            word = clause.id.partition(".")[2]
            notes = self.bench.ledger.of(TOPIC_OF.get(word, word))
        except KeyError:
            return ()
        log = self.bench.client.log
        shown = []
        for note in notes[:3]:
            written = next((n for n in range(note.exchange, -1, -1) if log[n].method not in ("GET", "HEAD")), None)
            if written is not None and clause.changes and written != note.exchange:
                shown.append(written)
            shown.append(max(0, note.exchange))
        return tuple(log[n] for n in dict.fromkeys(shown))

    def _result(
        self,
        clause: Clause,
        verdict: str,
        reason: str,
        seconds: float,
        exchanges: tuple[Exchange, ...],
        evidence: Exchange | None = None,
    ) -> ClauseResult:
        note = ""
        waiver = next((waiver for waiver in self.waivers if waiver.clause == clause.id), None)
        if waiver is not None and waiver.expires < self.today:
            text = f"its waiver expired on {waiver.expires} ({waiver.reason})"
            reason = f"{reason}; {text}" if reason else text
            verdict = ERROR
        elif verdict == FAILED and clause.id in self.quirks.expect:
            verdict, note = QUIRK, f"known of {self.quirks.name}: {self.quirks.expect[clause.id]}"
        elif verdict == FAILED and waiver is not None:
            verdict, note = WAIVED, f"waived until {waiver.expires}: {waiver.reason}"
        elif verdict == PASSED and waiver is not None:
            note = "its waiver is not needed any more"
        grade = self.grades.get(clause.id, MUST)
        if verdict == FAILED:
            verdict = OF_GRADE[grade]
        return ClauseResult(clause, verdict, reason, note, seconds, exchanges, grade, evidence)
