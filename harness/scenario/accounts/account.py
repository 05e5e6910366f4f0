"""What a way to run does with each key of a scenario: honour it, refuse it, or leave it out and name it.

What no rule knows is refused, so that a key that is new tomorrow is in no way to run ignored in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from msgspec import Struct, field
from pydantic import BaseModel

from mews.harness.scenario.accounts.keys import ANY, ScenarioKey, given_keys

REST = "**"
"""The end of a pattern that covers the key and all below it."""


class KeyUse(Enum):
    """What becomes of a key."""

    HONOURED = "honoured"
    HARMLESS = "harmless"
    """It changes no result in any way to run."""
    IGNORED = "ignored"
    """The run goes on without it, and names it."""
    REFUSED = "refused"


class KeyRule(Struct, frozen=True):
    """The use of a key, and the reason for any other than honouring it. ``but`` are values that are honoured."""

    use: KeyUse
    why: str = ""
    but: tuple[Any, ...] = ()


HONOURED = KeyRule(KeyUse.HONOURED)


def harmless(why: str) -> KeyRule:
    """It changes no result."""
    return KeyRule(KeyUse.HARMLESS, why)


def ignored(why: str, *, but: tuple[Any, ...] = ()) -> KeyRule:
    """Named, and left out."""
    return KeyRule(KeyUse.IGNORED, why, but)


def refused(why: str, *, but: tuple[Any, ...] = ()) -> KeyRule:
    """Refused."""
    return KeyRule(KeyUse.REFUSED, why, but)


class UnplayedKey(Struct, frozen=True):
    """A key that a way to run does not honour: its dotted place and the reason."""

    key: str
    why: str

    def as_dict(self) -> dict[str, str]:
        """Return them as JSON has it."""
        return {"key": self.key, "why": self.why}

    @property
    def text(self) -> str:
        """``steps.2.fault: nothing fails in a trace``."""
        return f"{self.key}: {self.why}"


class KeyAccount(Struct, frozen=True):
    """The rules of one way to run, by pattern: ``workload.gate.every``, ``steps.*.fault.**``. ``way`` ends the sentence
    "is not known to …"."""

    way: str
    rules: Mapping[str, KeyRule]
    _parsed: dict[tuple[str, ...], KeyRule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._parsed.update({tuple(pattern.split(".")): rule for pattern, rule in self.rules.items()})

    def rule_of(self, pattern: tuple[str, ...]) -> tuple[tuple[str, ...], KeyRule] | None:
        """Return the most specific rule for a key, with its pattern; None where nobody declared any."""
        found = [(each, rule) for each, rule in self._parsed.items() if _covers(each, pattern)]
        return max(found, key=lambda item: _specific(item[0]), default=None)

    def refused(self, given: BaseModel) -> list[UnplayedKey]:
        """Return what of a scenario, or a step, this way to run refuses, each place once."""
        return list(self._unplayed(given, KeyUse.REFUSED))

    def ignored(self, given: BaseModel) -> list[UnplayedKey]:
        """Return what of it is left out."""
        return list(self._unplayed(given, KeyUse.IGNORED))

    def _unplayed(self, given: BaseModel, use: KeyUse) -> Iterable[UnplayedKey]:
        return dict.fromkeys(each for found, each in self._judged(given) if found is use)

    def _judged(self, given: BaseModel) -> Iterator[tuple[KeyUse, UnplayedKey]]:
        for key in given_keys(given):
            yield self._judge(key)

    def _judge(self, key: ScenarioKey) -> tuple[KeyUse, UnplayedKey]:
        found = self.rule_of(key.pattern)
        if found is None:
            return KeyUse.REFUSED, UnplayedKey(".".join(key.place), f"is not known to {self.way}")
        pattern, rule = found
        # Of a step it is the action that is left out; of a system's options that very one.
        place = key.place[: len(pattern) - 1] if pattern[-1] == REST and pattern[0] != "stack" else key.place
        honoured = rule.but and key.value in rule.but
        return KeyUse.HONOURED if honoured else rule.use, UnplayedKey(".".join(place), rule.why)


def _covers(rule: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    whole = rule[-1] == REST
    wanted = rule[:-1] if whole else rule
    if len(wanted) > len(pattern) or (not whole and len(wanted) != len(pattern)):
        return False
    return all(mine in (ANY, theirs) for mine, theirs in zip(wanted, pattern, strict=False))


def _specific(rule: tuple[str, ...]) -> tuple[int, int]:
    return sum(part not in (ANY, REST) for part in rule), len(rule)


def in_words(keys: Iterable[UnplayedKey]) -> str:
    """Return one line: reasons with the keys that share them, in their order."""
    by_reason: dict[str, list[str]] = {}
    for each in keys:
        by_reason.setdefault(each.why, []).append(each.key)
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in by_reason.items())
