"""The library in the tests' own process, at a time that stands still."""

import ctypes

from mews.emulator.nvml.library import LIBRARY
from mews.emulator.nvml.state import NvmlHost, StateClock, write_state
from mews.emulator.telemetry.units import ns
from tests.emulator.nvml.header import fields

FIELDS = fields()
NUMBERS = {name: number for number, name in FIELDS.items()}
SIGNED = 5


class FieldValue(ctypes.Structure):
    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("result", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    )


class Reader:
    """The library in this process; time stands still where the state says so."""

    def __init__(self, host):
        self.host = host
        self.calls = ctypes.CDLL(str(host.folder / LIBRARY))
        self.device = ctypes.c_void_p()

    def show(self, *gpus, at_s=0.0, **more):
        clock = StateClock(0, ns(at_s), speed=0)
        write_state(self.host.state, NvmlHost(gpus=gpus, clock=clock, **more))
        assert self.calls.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) == 0

    def __call__(self, name, scope=0):
        """The value, or minus its code."""
        one = FieldValue(NUMBERS[name], scope)
        assert self.calls.nvmlDeviceGetFieldValues(self.device, 1, ctypes.byref(one)) == 0
        if one.result != 0:
            return -one.result
        return ctypes.c_int(one.value & 0xFFFFFFFF).value if one.type == SIGNED else one.value

    def supported(self):
        """Names of the fields that the board has, of link 0 where they are of links."""
        return {name for name in NUMBERS if self(name) >= 0 or (name.endswith("_TLIMIT") and self(name) > -100)}
