"""What somebody does to a host and may have to wait for: a write into sysfs, a hot-plug call of NVML."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from mews.emulator.host.errors import HostRefusalError


class PendingAction(Struct, eq=False):
    """``done`` once it has happened or was refused; until then whoever did it waits, as the kernel lets a write wait.

    ``ready`` tells whether it can happen now, ``act`` lets it (and may raise HostRefusalError).
    """

    what: str
    ready: Callable[[], bool]
    act: Callable[[], None]
    done: bool = False
    refusal: HostRefusalError | None = None

    def advance(self) -> bool:
        """Let it happen if it can; whether it is done."""
        if not self.done and self.ready():
            self.done = True
            try:
                self.act()
            except HostRefusalError as refusal:
                self.refusal = refusal
        return self.done
