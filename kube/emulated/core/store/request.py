"""Who writes, and how."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from msgspec import Struct, field

from mews.kube.emulated.core.store import users
from mews.kube.emulated.core.store.users import User

T = TypeVar("T")


class WriteRequest(Struct, frozen=True, eq=False):
    """The part of a write that is not its object: the user, the field manager, whether to leave all as it is.

    ``validation`` is Ignore, Warn or Strict: what becomes of fields that are not known or said twice. ``duplicates``
    names the latter; ``raw`` is the JSON text of a POST or PUT, for telling them in its order. What is warned of goes
    to ``warnings``. ``subresource`` is told in managedFields where the write goes to the main resource (scale).
    ``answers`` keeps what a write must find again when it is begun anew (``admission.completed``); None for a write of
    the server itself, which no policy or webhook of a user's is asked about.
    """

    # Compared by identity: what is warned of, and the answers, are of one write.
    identity: User = users.ADMIN
    manager: str = ""
    dry_run: bool = False
    validation: str = "Ignore"
    raw: bytes = b""
    duplicates: Sequence[str] = ()
    subresource: str = ""
    warnings: list[str] = field(default_factory=list)
    answers: dict[Hashable, Any] | None = None

    @property
    def user(self) -> str:
        """The user's name."""
        return self.identity.name

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what ``make`` made at the write's first attempt."""
        if self.answers is None:
            return make()
        if key not in self.answers:
            self.answers[key] = make()
        found: T = self.answers[key]
        return found


ADMIN = WriteRequest()
