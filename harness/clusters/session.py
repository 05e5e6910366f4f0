"""What several scenarios of one run share, since it is dear to start: a control plane, a kind cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from mews.harness.errors import BadInputError, RequirementError

T = TypeVar("T")


class ClusterSession:
    """Holds what backends share: made for the first scenario that needs it, used by each later one, ended by ``close``.

    Used by one scenario at a time; outlives their event loops. ``keep``: a real cluster outlives even this; ``notify``
    is called with what takes its time.
    """

    def __init__(self, *, keep: bool = False, notify: Callable[[str], None] = lambda _: None) -> None:
        self.keep = keep
        self.notify = notify
        self._shared: dict[str, tuple[Any, Callable[[Any], None]]] = {}
        self._lacking: dict[str, RequirementError] = {}

    def share(self, name: str, make: Callable[[], T], end: Callable[[T], None]) -> T:
        """Return what is shared under that name; made at the first call. ``end`` ends it, with the session.

        Raises RequirementError where it cannot be had; for the next scenario that is known, and not tried again.
        """
        if name in self._lacking:
            raise self._lacking[name]
        if name not in self._shared:
            try:
                self._shared[name] = (make(), end)
            except RequirementError as error:
                self._lacking[name] = error
                raise
        return cast("T", self._shared[name][0])

    def close(self) -> None:
        """End it all, the last first.

        Raises RequirementError for what cannot be ended, after the rest was.
        """
        shared, self._shared = self._shared, {}
        with contextlib.ExitStack() as ending:
            for thing, end in shared.values():
                ending.callback(end, thing)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except RequirementError as left:
            if isinstance(error, RequirementError | BadInputError):  # why it ended is not forgotten over what is left
                raise type(error)(f"{error}\n{left}") from error
            raise
