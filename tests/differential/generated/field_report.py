"""Which of the cases about fields differ, and the share of each kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tests.differential.generated.fields import compared, kind_of
from tests.differential.generated.known_fields import KNOWN_FIELDS
from tests.differential.model import Pair


def verdicts(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with the verdicts alone."""
    return [replace(pair, real=compared(pair.real), ours=compared(pair.ours)) for pair in pairs]


def known_reason(pair: Pair) -> str:
    """Why a difference is known; "" if it is not."""
    text = str(pair.real.get("message") or pair.real.get("warnings"))
    for (about, said), reason in KNOWN_FIELDS.items():
        if re.search(about, pair.case.name) and re.search(said, text, re.IGNORECASE):
            return reason
    return ""


def differing(pairs: Sequence[Pair]) -> tuple[list[Pair], list[tuple[Pair, str]]]:
    """Those that differ, and those that differ for a known reason, with it."""
    found = [pair for pair in verdicts(pairs) if not pair.same]
    reasons = [(pair, known_reason(pair)) for pair in found]
    return [pair for pair, reason in reasons if not reason], [entry for entry in reasons if entry[1]]


def shares(pairs: Sequence[Pair]) -> dict[str, tuple[int, int]]:
    """Cases, and how many are the same, by kind."""
    found: dict[str, tuple[int, int]] = {}
    for pair in verdicts(pairs):
        asked, same = found.get(kind_of(pair.case.name), (0, 0))
        found[kind_of(pair.case.name)] = (asked + 1, same + pair.same)
    return found


def kinds_table(pairs: Sequence[Pair]) -> str:
    """One row for each kind, the worst first; and all."""
    rows = sorted(shares(pairs).items(), key=lambda row: row[1][1] / row[1][0])
    asked, same = (sum(counts[part] for _, counts in rows) for part in (0, 1))
    lines = [f"{kind:66} {n:5} {k:5} {100 * k / n:6.1f}" for kind, (n, k) in [*rows, ("all", (asked, same))]]
    return "\n".join([f"{'kind':66} {'cases':>5} {'same':>5} {'percent':>6}", *lines])
