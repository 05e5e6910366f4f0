"""One process that lives through changes of its host: counts, handles, events, holding."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from mews.emulator.nvml.requests import (
    Discover,
    Drain,
    Hold,
    NvmlReply,
    Persistence,
    Release,
    Remove,
    Return,
    decode_request,
    encode_reply,
    socket_path,
)
from mews.emulator.nvml.state import NvmlEvent
from tests.emulator.nvml.hosts import gpu, uuid_of

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed; pip install 'falcon-mews[test]' brings it")


class Client:
    """A Python process with pynvml that evaluates expressions for us."""

    LOOP = (
        "import sys, pynvml as p\n"
        "kept = {}\n"
        "for line in sys.stdin:\n"
        "    try:\n"
        "        print(repr(eval(line)), flush=True)\n"
        "    except p.NVMLError as error:\n"
        "        print(type(error).__name__, flush=True)\n"
    )

    def __init__(self, host, **environment):
        self.child = subprocess.Popen(
            [sys.executable, "-c", self.LOOP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=host.environment(**environment),
        )

    def ask(self, expression):
        self.child.stdin.write(expression + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()

    def begin(self, expression):
        self.child.stdin.write(expression + "\n")
        self.child.stdin.flush()

    def answer(self):
        return self.child.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait(10)
        self.child.stdout.close()


class Driver:
    """Serves the socket as the host does, with canned answers, and remembers what was asked."""

    def __init__(self, host, answers=()):
        self.asked, self.answers = [], dict(answers)
        self.ended = threading.Event()
        self.server = socket.socket(socket.AF_UNIX)
        with contextlib.chdir(host.folder):
            self.server.bind(socket_path(host.state).name)
        self.server.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        held = False
        with connection, connection.makefile("rwb") as lines:
            for line in lines:
                request = decode_request(line)
                self.asked.append(request)
                held = held or isinstance(request, Hold)
                act = self.answers.get(type(request), Return.SUCCESS)
                lines.write(encode_reply(NvmlReply(act() if callable(act) else act)))
                lines.flush()
        if held:
            self.ended.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


def test_the_count_follows_the_host_in_one_process(host):
    host.show(gpu(0), gpu(1))
    with Client(host) as client:
        client.ask("p.nvmlInit()")
        counts = [client.ask("p.nvmlDeviceGetCount()")]
        for gpus in ((gpu(0),), (), (gpu(0), gpu(1))):
            host.show(*gpus)
            counts.append(client.ask("p.nvmlDeviceGetCount()"))
    assert counts == ["2", "1", "0", "2"]


def test_a_moved_gpu_keeps_its_uuid_and_its_old_handle_is_lost(host):
    host.show(gpu(0))
    with Client(host) as client:
        client.ask("p.nvmlInit()")
        client.ask("kept.setdefault('h', p.nvmlDeviceGetHandleByIndex(0))")
        host.show(gpu(0, bus_id="0000:77:00.0", minor=3))
        assert client.ask("p.nvmlDeviceGetUUID(kept['h'])") == "NVMLError_GpuIsLost"
        assert client.ask("p.nvmlDeviceGetMinorNumber(p.nvmlDeviceGetHandleByUUID('" + uuid_of(0) + "'))") == "3"


def test_initialising_is_counted(host):
    host.show(gpu(0))
    with Client(host) as client:
        assert client.ask("p.nvmlDeviceGetCount()") == "NVMLError_Uninitialized"
        for expression in ("p.nvmlInit()", "p.nvmlInit()", "p.nvmlShutdown()"):
            assert client.ask(expression) == "None"
        assert client.ask("p.nvmlDeviceGetCount()") == "1"
        assert client.ask("p.nvmlShutdown()") == "None"
        assert client.ask("p.nvmlShutdown()") == "NVMLError_Uninitialized"


def test_a_process_that_knew_a_gpu_still_sees_it_drain_and_a_new_one_does_not(host):
    host.show(gpu(0), gpu(1))
    with Client(host) as old, Client(host) as new:
        old.ask("p.nvmlInit()")
        host.show(gpu(0), gpu(1, draining=True))
        new.ask("p.nvmlInit()")
        assert (old.ask("p.nvmlDeviceGetCount()"), new.ask("p.nvmlDeviceGetCount()")) == ("2", "1")
        old.ask("p.nvmlShutdown()")
        old.ask("p.nvmlInit()")
        assert old.ask("p.nvmlDeviceGetCount()") == "1"


def test_lost_and_unknown_gpus_answer_so_until_they_recover(host):
    host.show(gpu(0), gpu(1))
    with Client(host) as client:
        client.ask("p.nvmlInit()")
        client.ask("[kept.setdefault(i, p.nvmlDeviceGetHandleByIndex(i)) for i in (0, 1)]")
        host.show(gpu(0, lost=True), gpu(1, unknown_error=True))
        assert client.ask("p.nvmlDeviceGetCount()") == "2"
        assert client.ask("p.nvmlDeviceGetPowerUsage(kept[0])") == "NVMLError_GpuIsLost"
        assert client.ask("p.nvmlDeviceGetHandleByIndex(0)") == "NVMLError_GpuIsLost"
        assert client.ask("p.nvmlDeviceGetPowerUsage(kept[1])") == "NVMLError_Unknown"
        assert client.ask("p.nvmlDeviceGetUUID(kept[0])") == repr(uuid_of(0))
        host.show(gpu(0), gpu(1))
        assert client.ask("p.nvmlDeviceGetPowerUsage(kept[0])") == "25000"


WAIT = "[(e.eventType, e.eventData) for e in [p.nvmlEventSetWait_v2(kept['set'], {ms})]]"


def test_waiting_lasts_its_time_and_ends_with_an_xid(host):
    host.show(gpu(0), events=(NvmlEvent(1, "xid", gpu(0).bus_id, 13),))
    with Client(host) as client:
        client.ask("p.nvmlInit()")
        client.ask("kept.setdefault('set', p.nvmlEventSetCreate())")
        client.ask("p.nvmlDeviceRegisterEvents(p.nvmlDeviceGetHandleByIndex(0), 8, kept['set'])")
        begin = time.monotonic()
        assert client.ask(WAIT.format(ms=60)) == "NVMLError_Timeout"
        assert time.monotonic() - begin >= 0.06
        client.begin(WAIT.format(ms=20000))
        events = (NvmlEvent(1, "xid", gpu(0).bus_id, 13), NvmlEvent(2, "xid", gpu(0).bus_id, 79))
        host.show(gpu(0, lost=True), events=events)
        assert client.answer() == "[(8, 79)]"
        assert client.ask(WAIT.format(ms=0)) == "NVMLError_Timeout"


def test_events_of_others_and_unregistered_kinds_do_not_wake(host):
    host.show(gpu(0), gpu(1))
    with Client(host) as client:
        client.ask("p.nvmlInit()")
        client.ask("kept.setdefault('set', p.nvmlEventSetCreate())")
        client.ask("p.nvmlDeviceRegisterEvents(p.nvmlDeviceGetHandleByIndex(0), 8, kept['set'])")
        events = (NvmlEvent(1, "xid", gpu(1).bus_id, 79), NvmlEvent(2, "ecc-double", gpu(0).bus_id))
        host.show(gpu(0), gpu(1), events=events)
        assert client.ask(WAIT.format(ms=30)) == "NVMLError_Timeout"


def test_binding_and_unbinding_are_system_events(host):
    host.show(gpu(0))
    wait = (
        "[(one['eventType'], hex(one['gpuId'])) for one in p.nvmlSystemEventSetWait("
        "p.nvmlSystemEventSetWaitRequest_v1, kept['set'], {ms}, (p.c_nvmlSystemEventData_v1_t * 4)(), 4)]"
    )
    with Client(host) as client:
        client.ask("p.nvmlInit()")
        client.ask("kept.setdefault('set', p.nvmlSystemEventSetCreate(p.nvmlSystemEventSetCreateRequest_v1))")
        client.ask("p.nvmlSystemRegisterEvents(p.nvmlSystemRegisterEventRequest_v1, 3, kept['set'])")
        assert client.ask(wait.format(ms=20)) == "[]"
        host.show(gpu(0), events=(NvmlEvent(1, "unbind", "0000:44:00.0"), NvmlEvent(2, "bind", "0001:45:00.0")))
        assert client.ask(wait.format(ms=5000)) == "[(1, '0x4400'), (2, '0x14500')]"
        assert client.ask("p.nvmlSystemEventSetFree(p.nvmlSystemEventSetFreeRequest_v1, kept['set'])") == "None"


def test_a_process_holds_its_device_files_and_says_so_until_it_ends(host):
    dev = host.folder / "dev"
    dev.mkdir()
    for name in ("nvidiactl", "nvidia0", "nvidia1"):
        (dev / name).touch()
    host.show(gpu(0), gpu(1), dev_root=str(dev))
    with Driver(host) as driver, Client(host, NVIDIA_VISIBLE_DEVICES=uuid_of(1)) as client:
        client.ask("p.nvmlInit()")
        links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{client.child.pid}/fd")]
        assert sorted(link for link in links if link.startswith(str(dev))) == [f"{dev}/nvidia1", f"{dev}/nvidiactl"]
        assert driver.asked == [Hold(client.child.pid, (gpu(1).bus_id,))]
        client.child.kill()
        assert driver.ended.wait(5)


def test_shutting_down_lets_go(host):
    host.show(gpu(0))
    with Driver(host) as driver, Client(host) as client:
        client.ask("p.nvmlInit()")
        client.ask("p.nvmlShutdown()")
        assert driver.asked == [Hold(client.child.pid, (gpu(0).bus_id,)), Release()]


def test_a_gpu_that_comes_later_is_held_once_it_is_used(host):
    host.show(gpu(0))
    with Driver(host) as driver, Client(host) as client:
        client.ask("p.nvmlInit()")
        host.show(gpu(0), gpu(1))
        assert client.ask("p.nvmlDeviceGetCount()") == "2"
        assert len(driver.asked) == 1
        client.ask("p.nvmlDeviceGetHandleByIndex(1)")
        assert driver.asked[-1] == Hold(client.child.pid, (gpu(0).bus_id, gpu(1).bus_id))


PCI = "p.nvmlDeviceGetPciInfo(p.nvmlDeviceGetHandleByIndex(0))"


def test_hot_plug_calls_ask_the_host_and_return_what_it_says(host):
    def draining():
        host.show(gpu(0, draining=True))
        return Return.SUCCESS

    host.show(gpu(0))
    answers = {Drain: draining, Persistence: Return.IN_USE, Remove: Return.IN_USE}
    with Driver(host, answers) as driver, Client(host) as client:
        client.ask("p.nvmlInit()")
        client.ask(f"kept.setdefault('pci', {PCI})")
        assert client.ask("p.nvmlDeviceSetPersistenceMode(p.nvmlDeviceGetHandleByIndex(0), 1)") == "NVMLError_InUse"
        assert client.ask("p.nvmlDeviceQueryDrainState(kept['pci'])") == "0"
        assert client.ask("p.nvmlDeviceModifyDrainState(kept['pci'], 1)") == "None"
        assert client.ask("p.nvmlDeviceQueryDrainState(kept['pci'])") == "1"
        assert client.ask("p.nvmlDeviceRemoveGpu(kept['pci'])") == "NVMLError_InUse"
        assert client.ask("p.nvmlDeviceDiscoverGpus(p.nvmlPciInfo_t())") == "None"
    me, bus_id = client.child.pid, gpu(0).bus_id
    assert driver.asked[:7] == [
        Hold(me, (bus_id,)),
        Persistence(bus_id, True),
        Drain(bus_id, True),
        Hold(me, ()),
        Remove(bus_id, False, False),
        Hold(me, (bus_id,)),
        Discover(None),
    ]


def test_without_a_host_hot_plug_is_not_supported(host):
    host.show(gpu(0))
    with Client(host) as client:
        client.ask("p.nvmlInit()")
        assert client.ask(f"p.nvmlDeviceModifyDrainState({PCI}, 1)") == "NVMLError_NotSupported"


def test_a_forked_child_can_go_on(host):
    host.show(gpu(0), gpu(1))
    told = host.python(
        "import os, pynvml as p, threading\n"
        "p.nvmlInit()\n"
        "stop = threading.Event()\n"
        "def call():\n"
        "    while not stop.is_set(): p.nvmlDeviceGetCount()\n"
        "threads = [threading.Thread(target=call) for _ in range(4)]\n"
        "[t.start() for t in threads]\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "for _ in range(20):\n"
        "    child = os.fork()\n"
        "    if child == 0: os._exit(p.nvmlDeviceGetCount())\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2\n"
        "stop.set(); [t.join() for t in threads]\n"
        "print('fine')\n"
    )
    assert told == "fine\n"
