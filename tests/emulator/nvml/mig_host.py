"""A host whose MIG programs change through the library: one host of two, served as the daemon serves it."""

import threading

from mews.emulator.host.errors import (
    BadWriteError,
    DeviceInUseError,
    HostRefusalError,
    NoRoomLeftError,
    NoSuchDeviceError,
    NotSupportedError,
)
from mews.emulator.host.holders import Holder
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.nvml.requests import (
    ChangeMig,
    Hold,
    NvmlReply,
    Release,
    ResetGpu,
    Return,
    decode_request,
    encode_reply,
)
from mews.emulator.nvml.state import write_state
from tests.emulator.host.bench import Pair
from tests.emulator.nvml.test_hotplug import Driver

CODES = {
    BadWriteError: Return.INVALID_ARGUMENT,
    DeviceInUseError: Return.IN_USE,
    NoRoomLeftError: Return.INSUFFICIENT_RESOURCES,
    NoSuchDeviceError: Return.NOT_FOUND,
    NotSupportedError: Return.NOT_SUPPORTED,
}
A100, H100 = "000001", "000002"


class MigHost(Driver):
    """``folder``: a host's folder (``Host``). GPU 0 is a V100's neighbour, an A100; GPU 1 an H100. ``more``: models."""

    def __init__(self, folder, gpus=4, **more):
        self.pair = Pair(ports=("1",) * gpus, kinds=("GPU",) * gpus, **more)
        self.folder = folder
        self.lock = threading.Condition()
        self.keys = 0
        self.show()
        super().__init__(folder)

    def show(self):
        write_state(self.folder.state, nvml_host(self.pair.host))

    def function(self, device):
        return self.pair.device(device)

    def compute(self, uuid, key="pod", **more):
        """A container's process works on a device."""
        with self.lock:
            self.pair.host.hold(Holder(key, (uuid,), pid=more.pop("pid", 5000), computing=True, **more), self.pair.t)
            self.show()

    def end(self, key="pod"):
        with self.lock:
            self.pair.host.release(key, self.pair.t)
            self.show()

    def serve(self, connection):
        with self.lock:
            self.keys += 1
            key = f"nvml/{self.keys}"
        with connection, connection.makefile("rwb") as lines:
            for line in lines:
                with self.lock:
                    reply = self.answer(decode_request(line), key)
                    self.show()
                lines.write(encode_reply(reply))
                lines.flush()
        with self.lock:
            self.pair.host.release(key, self.pair.t)
            self.lock.notify_all()

    def await_end_of(self, pid):
        """Return when the host knows that this process, which has ended, holds nothing any more."""
        with self.lock:
            assert self.lock.wait_for(lambda: all(holder.pid != pid for holder in self.pair.host.holders), 10)

    def answer(self, request, key):
        host, calls, now_s = self.pair.host, self.pair.nvml_calls, self.pair.t
        self.asked.append(request)
        asker = [holder.key for holder in host.holders if holder.key.startswith("nvml/")]
        try:
            match request:
                case Hold():
                    uuids = tuple(f.device.uuid for f in host.bus.functions() if f.bdf in request.bus_ids)
                    host.hold(Holder(key, uuids, pid=request.pid), now_s)
                case Release():
                    host.release(key, now_s)
                case ResetGpu():
                    calls.reset_gpu(request.bus_id, now_s, asker=asker)
                case ChangeMig():
                    made = calls.mig(request.bus_id, request.act, request.numbers, now_s, asker=asker)
                    return NvmlReply(Return.SUCCESS, str(made))
        except HostRefusalError as refusal:
            return NvmlReply(CODES[type(refusal)], str(refusal))
        return NvmlReply(Return.SUCCESS)
