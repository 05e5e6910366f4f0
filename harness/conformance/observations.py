"""What was noticed on the way, whatever clause was being judged: topics with their observations."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

TOPICS = (
    "answers",  # a connection ended without an answer
    "whole",  # an answer ended before the length that it had named
    "coding",  # a body in a coding that was not asked for
    "access",  # a move that is answered with 401 or 403
    "busy",  # HTTP 429 that does not say when to come back
    "clock",  # a Date that is none, or far from this machine's
    "task",  # a long operation whose monitor or task is not as the protocol has it
    "server-errors",  # HTTP 500 or more
    "complete",  # a listing lacked devices that a later one had
    "lost",  # a device is not listed any more
    "fresh",  # a listing showed an older state than what had been acknowledged
    "alone",  # another device than the asked one changed
    "uuid",  # a device changed its UUID
    "attach",  # an attach that did not attach
    "detach",
    "truth-attach",  # a reply that said the opposite of what happened
    "truth-detach",
    "reply",  # a reply to a write of the wrong form
    "words",  # an error in other words than the contract's
    "error-type",  # an error of another content type
    "error-form",  # an error whose body has another form
    "layout-error",  # an error of layout-apply whose body has another form
    "sniffing",  # a reply without the header that forbids to guess its type
    "token-type",  # a token of another type than Bearer
    "challenge",  # a 401 that does not say how to log in
    "form",  # a reply to a read of the wrong form
    "times",  # slower than the limit
)


class Observation(Struct, frozen=True):
    """One observation; ``exchange`` is its place in the client's log."""

    text: str
    exchange: int


class Observations:
    """Observations by topic, and how often each kind of operation was done."""

    def __init__(self) -> None:
        self._notes: dict[str, list[Observation]] = {topic: [] for topic in TOPICS}
        self.done: Counter[str] = Counter()

    def note(self, topic: str, text: str, exchange: int) -> None:
        """Write one down."""
        self._notes[topic].append(Observation(text, exchange))

    def of(self, topic: str) -> tuple[Observation, ...]:
        """Return all of a topic, in order."""
        return tuple(self._notes[topic])

    def mark(self) -> dict[str, int]:
        """Return how much there is of each topic, for ``rewind``."""
        return {topic: len(notes) for topic, notes in self._notes.items()}

    def rewind(self, mark: dict[str, int], *topics: str) -> None:
        """Strike out what was noted of these topics since the mark: something else has been found to be the cause."""
        for topic in topics:
            del self._notes[topic][mark[topic] :]
