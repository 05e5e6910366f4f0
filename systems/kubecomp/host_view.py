"""Finds the devices that a host shows, on whichever port the table of their chassis has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from mews.systems.kubecomp.node_devices import LocalDevice

Confirm = Callable[[Sequence[LocalDevice]], Awaitable[Sequence[LocalDevice]]]
"""Which of some devices the host sees; only these are announced."""


class HostView:
    """What one host shows. ``confirm``: None where its files cannot be read, and the chassis' table is all there is;
    ``changed`` is called when ``strays`` has changed."""

    def __init__(self, confirm: Confirm | None, changed: Callable[[], None]) -> None:
        self._confirm = confirm
        self._changed = changed
        self._here: Sequence[LocalDevice] | None = None
        self._strays: dict[str, LocalDevice] = {}

    @property
    def strays(self) -> tuple[str, ...]:
        """The GPUIDs of the devices that the host shows although the table has them elsewhere, in order."""
        return tuple(sorted(self._strays))

    async def look(
        self, here: Sequence[LocalDevice], others: Callable[[], Iterable[LocalDevice]]
    ) -> Sequence[LocalDevice]:
        """Return those of ``here``, the devices on this node's ports, that the host shows.

        A device that has left its ports is looked for as well, and in the first look all ``others`` of its chassis:
        the table may be an old one (fault ``stale-list``, contract chassis.md).
        """
        if self._confirm is None:
            return here
        doubtful: Iterable[LocalDevice] = self._strays.values()
        if here is not self._here:
            doubtful = others() if self._here is None else (*self._here, *doubtful)
            self._here = here
        await self._look_for({device.gpuid: device for device in doubtful if device.uuid}, self._confirm)
        return await self._confirm(here)

    async def _look_for(self, doubtful: dict[str, LocalDevice], confirm: Confirm) -> None:
        for device in self._here or ():
            doubtful.pop(device.gpuid, None)
        shown = await confirm(list(doubtful.values())) if doubtful else ()
        strays = {device.gpuid: device for device in shown}
        if strays.keys() != self._strays.keys():
            self._strays = strays
            self._changed()
