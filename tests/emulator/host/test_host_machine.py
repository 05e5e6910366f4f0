"""Anything that chassis and operators do, in any order, against a model of a few booleans per device."""

from dataclasses import dataclass

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mews.emulator.host.errors import HostRefusalError
from mews.emulator.host.function import BringUpStage
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.nvml.state import render
from tests.emulator.host.bench import Pair

DEVICES = ("000001", "000002", "000003", "000004")
PORTS = (None, "1", "2")


@dataclass
class Believed:
    """What a device should be like on host-1."""

    port: str | None
    removed: bool = False
    unbound: bool = False

    @property
    def function(self):
        return self.port == "1" and not self.removed

    @property
    def bound(self):
        return self.function and not self.unbound


class HostMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.pair = Pair()
        self.model = {device: Believed("1" if device != "000004" else "2") for device in DEVICES}
        self.held = set()

    def _operate(self, do, device):
        function = next((f for f in self.pair.host.bus.functions() if f.device.id == device and f.plugged), None)
        if function is None:
            return False
        try:
            getattr(self.pair.operator, do)(function.bdf, self.pair.t)
        except HostRefusalError:
            return False
        return True

    @rule(device=st.sampled_from(DEVICES), port=st.sampled_from(PORTS))
    def move(self, device, port):
        old = self.model[device].port
        if old != port and device not in self.held:
            self.pair.move(device, old, port)
            self.model[device] = Believed(port)

    @rule(device=st.sampled_from(DEVICES))
    def remove(self, device):
        possible = self.model[device].function and device not in self.held
        if device not in self.held:
            assert self._operate("remove", device) == possible
            if possible:
                self.model[device].removed, self.model[device].unbound = True, False

    @rule(device=st.sampled_from(DEVICES))
    def unbind(self, device):
        if device not in self.held:
            assert self._operate("unbind", device) == self.model[device].bound
            if self.model[device].function:
                self.model[device].unbound = True

    @rule(device=st.sampled_from(DEVICES))
    def bind(self, device):
        believed = self.model[device]
        assert self._operate("bind", device) == (believed.function and believed.unbound)
        if believed.function:
            believed.unbound = False

    @rule()
    def rescan(self):
        self.pair.operator.rescan(self.pair.t)
        for believed in self.model.values():
            if believed.removed:
                believed.removed = False

    @rule(device=st.sampled_from(DEVICES))
    def hold_or_release(self, device):
        if device in self.held:
            self.held.discard(device)
            self.pair.release(device)
        elif self.model[device].bound:
            self.held.add(device)
            self.pair.hold(device, device)

    @rule()
    def reconcile(self):
        ports = {"A": {device: believed.port for device, believed in self.model.items()}}
        self.pair.hosts.reconcile(ports, self.pair.t)

    @invariant()
    def layers_agree_with_the_model(self):
        if not hasattr(self, "model"):
            return
        here = {f.device.id: f for f in self.pair.host.bus.functions()}
        assert sorted(here) == [device for device in DEVICES if self.model[device].port == "1"]
        for device, function in here.items():
            assert function.has_function == self.model[device].function
            assert bool(function.bound) == self.model[device].bound

    @invariant()
    def all_layers_are_derived_from_one_state(self):
        if not hasattr(self, "model"):
            return
        tree, functions = self.pair.tree, self.pair.host.bus.functions()
        visible = [f for f in functions if f.stage == BringUpStage.NVML]
        state = nvml_host(self.pair.host)
        assert [gpu.bus_id for gpu in state.gpus] == [f.bdf for f in visible]
        assert render(state).startswith(b"mews-nvml")
        assert tree.names("proc/driver/nvidia/gpus") == [f.bdf for f in functions if f.bound]
        shown = [name for name in tree.names("sys/bus/pci/devices") if int(name.split(":")[1], 16) >= 0x20]
        assert shown == [f.bdf for f in functions if f.has_function]
        minors = [f.minor for f in functions if f.minor is not None]
        assert len(minors) == len(set(minors))


TestHostMachine = HostMachine.TestCase
TestHostMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None, database=None)
