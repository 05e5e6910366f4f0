"""How the devices of a host come up, layer by layer, and how they go.

A device climbs the layers of ``ARROWS`` one by one, each with its own delay from the profile. It comes down at once:
orderly from the top, or by surprise, when the chassis takes a device away that is still there.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from mews.emulator.hardware.cards import RDMA_DRIVER
from mews.emulator.hardware.host_profiles import ARROWS, HostProfile
from mews.emulator.host.bus import HostBus
from mews.emulator.host.event_outlet import HostEventOutlet
from mews.emulator.host.events import FELL, ROSE
from mews.emulator.host.faults.board import HostFaults
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.pending_actions import PendingActions
from mews.emulator.host.virtual_functions import virtual_function


class BringUp:
    """Moves the devices of one host up and down their layers. ``running``: the machine is on; ``busy`` tells whether
    somebody has a GPU open."""

    def __init__(
        self,
        profile: HostProfile,
        rng: random.Random,
        *,
        bus: HostBus,
        actions: PendingActions,
        events: HostEventOutlet,
        faults: HostFaults,
        busy: Callable[[Function], bool],
    ) -> None:
        self.running = True
        self._profile = profile
        self._rng = rng
        self._bus = bus
        self._actions = actions
        self._events = events
        self._faults = faults
        self._busy = busy

    # Up

    def stand_up(self, function: Function) -> None:
        """Have every layer of a device come up at once, as in a machine that boots."""
        for arrow in ARROWS[: function.top]:
            self._reach(function, arrow)

    def climb(self, function: Function) -> None:
        """Let the next layer come up, if nothing stands against it."""
        arrow = function.next_arrow
        if arrow is None or function.lost or not self._may(function, arrow):
            return
        self._actions.agenda.forget(function)
        if self._faults.cuts(function, arrow):
            if function.stuck != arrow:
                function.stuck = arrow
                self._events.emit("stuck", function, arrow=arrow)
            return
        function.stuck = ""
        delay_s = self._profile.arrow(arrow).draw(self._rng) + self._faults.delay(function, arrow)
        self._actions.agenda.at(self._actions.now_s + delay_s, lambda t: self._arrive(function, arrow), function)

    def is_climbing(self, function: Function) -> bool:
        """Return whether its next layer (or its sweeping away) is under way."""
        return self._actions.agenda.has(function)

    def _may(self, function: Function, arrow: str) -> bool:
        if not (self.running and function.plugged and function.link and function.powered):
            return False
        if arrow == "function":
            return not function.plucked
        return not (arrow == "driver" and function.unbound)

    def _arrive(self, function: Function, arrow: str) -> None:
        self._reach(function, arrow)
        if arrow == "link" and not self._profile.pciehp:
            function.plucked = True
        if arrow == function.top_arrow:
            self._faults.at_top(function)
        if arrow == "driver" and function.is_gpu:
            self._events.driver_events.add("bind", function.bdf)
        self._events.emit(ROSE[arrow], function)
        self.climb(function)

    def _reach(self, function: Function, arrow: str) -> None:
        function.stage = BringUpStage(ARROWS.index(arrow) + 1)
        if function.stage == BringUpStage.DRIVER:
            function.driver = function.takes
        if function.stage == BringUpStage.DRIVER and function.is_gpu:
            taken = {f.minor for f in self._bus.functions() if f is not function and f.stage >= BringUpStage.DRIVER}
            function.minor = next(n for n in range(len(self._bus.functions()) + 1) if n not in taken)
        if function.stage == BringUpStage.DRIVER and function.driver == RDMA_DRIVER:
            numbers = {f.rdma for f in self._bus.on_bus()}
            function.rdma = next(n for n in range(len(numbers) + 1) if n not in numbers)
        if function.stage == BringUpStage.NODE:
            function.node_hidden = False

    # Down

    def take_down(self, function: Function, stage: BringUpStage) -> None:
        """Orderly, layer by layer from the top, at once."""
        self._actions.agenda.forget(function)
        function.stuck = ""
        while function.stage > stage:
            arrow = ARROWS[function.stage - 1]
            function.stage = BringUpStage(function.stage - 1)
            if arrow == "driver":
                self.disable_virtual(function)
                function.unload()
                if function.is_gpu:
                    self._events.driver_events.add("unbind", function.bdf)
            self._events.emit(FELL[arrow], function)
            if arrow == "driver":
                function.minor, function.rdma, function.driver = None, None, ""
        if function.stage < BringUpStage.FUNCTION:
            function.lost = False
            function.driver_override = ""

    def fall(self, function: Function) -> None:
        """The GPU falls off the bus: XID 79. It stays in sysfs, dead, until somebody removes it."""
        if function.lost or not function.has_function:
            return
        self._actions.agenda.forget(function)
        if function.stage >= BringUpStage.DRIVER and function.is_gpu:
            self._events.xid(function, 79)
        for one in (function, *function.virtual):
            one.lost = True
        self._events.emit("lost", function)

    # Virtual functions

    def enable_virtual(self, function: Function, count: int) -> None:
        """The driver makes that many of a function that has none; each comes up as any function does."""
        function.virtual = [virtual_function(function, place) for place in range(count)]
        for one in function.virtual:
            self.climb(one)

    def disable_virtual(self, function: Function) -> None:
        """A function's virtual ones go, in order."""
        for one in function.virtual:
            self.take_down(one, BringUpStage.LINK)
        function.virtual = []

    def cut(self, function: Function) -> None:
        """The link is gone under the device: what is there of it is lost, and goes once nobody has it open."""
        if not function.has_function:
            self.take_down(function, BringUpStage.ABSENT)
            if not function.plugged:
                self._bus.leave(function)
            return
        self.fall(function)
        self._actions.agenda.forget(function)
        delay_s = self._profile.surprise.draw(self._rng)
        self._actions.agenda.at(self._actions.now_s + delay_s, lambda t: self._sweep(function), function)

    def _sweep(self, function: Function) -> None:
        """pciehp takes the dead function away; the driver lets go only when nobody has it open any more."""
        function.persistence = False

        def gone() -> None:
            if function not in self._bus.functions() or not function.lost:
                return
            self.take_down(function, BringUpStage.ABSENT)
            if function.plugged:
                self.climb(function)
            else:
                self._bus.leave(function)

        self._actions.do(PendingAction(f"surprise removal of {function.bdf}", lambda: not self._busy(function), gone))
