"""The hosts as a process beside that of the chassis: files that act, real readers, NVML's requests, dying."""

import errno
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml

from mews.emulator.hostd.fuse_mount import lacking
from mews.emulator.hostd.mounts import unmount
from mews.emulator.nvml.library import library_path
from mews.emulator.nvml.requests import (
    Discover,
    Drain,
    Hold,
    Persistence,
    Remove,
    Return,
    decode_reply,
    encode_request,
    socket_path,
)
from mews.harness.catalogue.files import shipped

pytestmark = pytest.mark.wall

FUSE = lacking()
needs_fuse = pytest.mark.skipif(FUSE is not None, reason=f"no FUSE: {FUSE}")


def until(condition, what, seconds=15.0):
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.02)


@contextmanager
def child(folder, module, ready, *options):
    ready.unlink(missing_ok=True)
    with (folder / f"{ready.stem}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "--ready", str(ready), *options], stdout=log, stderr=log
        )
    try:
        until(lambda: ready.exists() or process.poll() is not None, f"{module} to serve")
        assert process.poll() is None, (folder / f"{ready.stem}.log").read_text()
        yield process
    finally:
        process.terminate()
        process.wait(10)


def alone(hardware, host, folder):
    """A hardware file with one host of another alone."""
    document = yaml.safe_load(hardware.read_text())
    document["hosts"] = [each for each in document["hosts"] if each["name"] == host]
    path = folder / "hardware.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


class Served:
    """Both processes, their doors and the first host's files."""

    def __init__(self, folder, fuse, hardware="demo", host="host-1"):
        self.folder, self.fuse, self.host = folder, fuse, host
        self.hardware = str(shipped("hardware", hardware))
        if hardware != "demo":
            self.hardware = str(alone(Path(self.hardware), host, folder))

    def chassis(self):
        state = str(self.folder / "table.sqlite")
        options = ("--hardware", self.hardware, "--state", state)
        return child(self.folder, "mews.emulator.serve", self.folder / "chassis.json", *options)

    def hosts(self):
        options = ["--hardware", self.hardware, "--chassis", str(self.folder / "chassis.json")]
        options += ["--root", str(self.folder / "h"), "--fuse", self.fuse]
        return child(self.folder, "mews.emulator.hostd.serve", self.folder / "hosts.json", *options)

    def ask(self, door, method, path, body=None):
        ready = json.loads((self.folder / f"{door}.json").read_text())
        control, trusted = ready["control"], ssl.create_default_context(cafile=ready["ca"])
        headers = {"Authorization": f"Bearer {control['token']}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(control["url"] + path, data, headers, method=method)
        with urlopen(request, timeout=30, context=trusted) as answer:
            return json.load(answer)

    def edit(self, device, port):
        self.ask("chassis", "POST", "/v1/edit", {"chassis": "A", "device": device, "port": port})

    @property
    def files(self):
        return self.folder / "h" / "fs" / self.host

    @property
    def devices(self):
        return self.files / "sys/bus/pci/devices"

    def gpus(self):
        return sorted(path.name for path in (self.files / "proc/driver/nvidia/gpus").iterdir())

    def state(self):
        return (self.folder / "h" / "host-1" / "nvml.state").read_text()


@contextmanager
def short_folder():
    """Short, since the path of a socket within has at most 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="mewsh-"))
    yield made
    unmount(made / "h" / "fs")
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def folder():
    with short_folder() as made:
        yield made


@pytest.fixture(scope="module", params=[pytest.param("yes", marks=needs_fuse), "no"], ids=["fuse", "folder"])
def served(request):
    """One pair of processes for all tests; each leaves host-1 with its first four GPUs, all up."""
    with short_folder() as folder:
        made = Served(folder, request.param)
        with made.chassis(), made.hosts():
            yield made


@pytest.fixture
def fused(served):
    if served.fuse == "no":
        pytest.skip("a write cannot block or fail without FUSE")
    return served


def test_the_files_follow_the_chassis_and_writes_act(served):
    assert served.gpus() == [f"0000:2{n}:00.0" for n in range(4)]
    served.edit("000500", "1")
    until(lambda: len(served.gpus()) == 5, "the new GPU in /proc")
    until(lambda: served.state().count("\ngpu\n") == 5, "NVML to see it")
    assert "nvidia4" in os.listdir(served.files / "dev")
    bdf = served.gpus()[0]
    (served.devices / bdf / "remove").write_text("1")
    until(lambda: bdf not in os.listdir(served.devices), "the removed function to go")
    (served.files / "sys/bus/pci/rescan").write_text("1")
    until(lambda: bdf in os.listdir(served.devices), "the rescan to find it")
    until(lambda: (served.devices / bdf / "driver").is_symlink(), "its driver")
    (served.files / "sys/bus/pci/drivers/nvidia/unbind").write_text(bdf)
    until(lambda: bdf not in served.gpus(), "the driver to let go")
    (served.files / "sys/bus/pci/drivers/nvidia/bind").write_text(bdf)
    until(lambda: bdf in served.gpus(), "the driver to take it")
    served.edit("000500", None)
    until(lambda: "): 79, " in (served.files / "var/log/kern.log").read_text(), "the XID")
    until(lambda: len(served.gpus()) == 4, "it to be gone")


@pytest.mark.parametrize("fuse", [pytest.param("yes", marks=needs_fuse), "no"])
def test_virtual_functions_are_made_by_writing_their_number(folder, fuse):
    served = Served(folder, fuse, "seed-004", "rdma-fpga")
    with served.chassis(), served.hosts():
        adapter = (served.files / "sys/class/infiniband/mlx5_0/device").resolve()
        (adapter / "sriov_numvfs").write_text("2")
        until(lambda: (adapter / "virtfn1" / "infiniband" / "mlx5_2").is_dir(), "two virtual functions")
        assert (served.files / "sys/class/infiniband/mlx5_2").resolve().parents[1] == (adapter / "virtfn1").resolve()
        assert (served.devices / (adapter / "virtfn0").resolve().name / "physfn").resolve() == adapter
        assert sorted(os.listdir(served.files / "dev/infiniband"))[-3:] == ["uverbs0", "uverbs1", "uverbs2"]
        if fuse == "yes":
            for text, code in (("3", errno.EBUSY), ("9", errno.ERANGE), ("x", errno.EINVAL)):
                with pytest.raises(OSError, match=r"\[Errno") as raised:
                    (adapter / "sriov_numvfs").write_text(text)
                assert raised.value.errno == code
        nodes = served.folder / "h" / served.host / "root" / "dev" / "infiniband"
        until(lambda: "uverbs2" in os.listdir(nodes), "its node in the driver root")
        (adapter / "sriov_numvfs").write_text("0")
        until(lambda: not (adapter / "virtfn0").is_symlink(), "none again")
        until(lambda: os.listdir(served.files / "sys/class/infiniband") == ["mlx5_0"], "its RDMA device alone")


def test_lspci_reads_the_tree(served):
    lspci = shutil.which("lspci") or shutil.which("lspci", path="/usr/sbin:/usr/bin")
    if lspci is None:
        pytest.skip("lspci is not installed (Debian: apt install pciutils)")
    command = [lspci, "-A", "linux-sysfs", "-O", f"sysfs.path={served.files}/sys/bus/pci", "-n", "-vv", "-D"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("0302: 10de:1db6 (rev a1)") == 4
    assert done.stdout.count("[size=32G]") == 4
    assert "Endpoint" in done.stdout
    assert "<access denied>" not in done.stdout


def test_a_write_blocks_while_a_program_has_the_gpu_open(fused):
    bdf = fused.gpus()[0]
    with (fused.files / "dev/nvidia0").open():
        writer = subprocess.Popen(["sh", "-c", f"echo 1 > {fused.devices / bdf / 'remove'}"])
        until(lambda: fused.ask("hosts", "GET", "/v1/hosts")["host-1"]["waiting"], "the write to wait")
        assert writer.poll() is None
        assert bdf in os.listdir(fused.devices)
    assert writer.wait(10) == 0
    assert bdf not in os.listdir(fused.devices)
    (fused.files / "sys/bus/pci/rescan").write_text("1")
    assert bdf in os.listdir(fused.devices)


@pytest.mark.parametrize(
    ("path", "said", "error"),
    [
        ("sys/bus/pci/rescan", "maybe", "EINVAL"),
        ("sys/bus/pci/drivers/nvidia/bind", "0000:ff:00.0", "ENODEV"),
        ("sys/bus/pci/drivers/nvidia/bind", "0000:20:00.0", "EBUSY"),
    ],
)
def test_a_write_fails_with_its_errno(fused, path, said, error):
    with pytest.raises(OSError, match=r"\[Errno") as raised:
        (fused.files / path).write_text(said)
    assert errno.errorcode[raised.value.errno] == error


def test_nvmls_requests_are_answered_by_the_same_state(served):
    path = socket_path(served.folder / "h" / "host-1" / "nvml.state")
    first, second = "0000:20:00.0", "0000:21:00.0"

    def asked(connection, request):
        connection.sendall(encode_request(request))
        return decode_reply(connection.makefile("rb").readline()).code

    with socket.socket(socket.AF_UNIX) as holder, socket.socket(socket.AF_UNIX) as other:
        holder.connect(str(path))
        other.connect(str(path))
        assert asked(other, Persistence(first, True)) == Return.SUCCESS
        assert asked(other, Drain(first, True)) == Return.IN_USE
        assert asked(other, Persistence(first, False)) == Return.SUCCESS
        assert asked(other, Drain(first, True)) == Return.SUCCESS
        assert "\ndraining 1\n" in served.state()
        assert asked(other, Remove(first, True, False)) == Return.SUCCESS
        assert first not in os.listdir(served.devices)
        assert asked(other, Discover(None)) == Return.SUCCESS
        assert first in os.listdir(served.devices)
        # A process of its own holds the second: this one may not remove it until the connection ends.
        code = (
            "import socket, sys\n"
            f"s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r})\n"
            f"s.sendall({encode_request(Hold(1, (second,)))!r}); s.makefile('rb').readline()\n"
            "print('held', flush=True); sys.stdin.read()"
        )
        with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"held\n"
            assert asked(other, Remove(second, True, False)) == Return.IN_USE
            process.kill()
        until(lambda: asked(other, Remove(second, True, False)) == Return.SUCCESS, "the dead process' hold to end")
        assert asked(other, Remove(second, True, False)) == Return.NOT_FOUND
        assert asked(other, Discover(None)) == Return.SUCCESS


@pytest.mark.parametrize("fuse", [pytest.param("yes", marks=needs_fuse), "no"])
def test_killed_and_started_again_the_hosts_are_as_the_chassis_has_them(folder, fuse):
    served = Served(folder, fuse)
    with served.chassis():
        with served.hosts() as process:
            process.kill()
            process.wait(10)
        served.edit("000100", "2")
        with served.hosts():
            assert len(served.gpus()) == 3
            assert served.state().count("\ngpu\n") == 3
            served.edit("000100", "1")
            until(lambda: len(served.gpus()) == 4, "the GPU that comes back")


def test_hosts_outlive_the_chassis_management_and_catch_up_with_it(folder):
    served = Served(folder, "no")
    with served.chassis() as first, served.hosts():
        first.kill()
        first.wait(10)
        assert len(served.gpus()) == 4
        with served.chassis():
            served.edit("000100", "2")
            until(lambda: len(served.gpus()) == 3, "the host to hear the new process")


COUNTER = """
import sys
import pynvml
pynvml.nvmlInit()
for _ in sys.stdin:
    print(pynvml.nvmlDeviceGetCount(), flush=True)
"""


def test_one_process_counts_the_gpus_that_the_chassis_moves(served):
    state = served.folder / "h" / "host-1" / "nvml.state"
    env = {**os.environ, "LD_LIBRARY_PATH": str(library_path().parent), "MEWS_NVML_STATE": str(state)}
    url = json.loads((served.folder / "chassis.json").read_text())["chassis"]["A"]["resource-pool"]

    def move(method, device, **port):
        body = json.dumps({"devid": device, **port}).encode()
        urlopen(Request(f"{url}/allocation", body, method=method), timeout=30).close()

    with subprocess.Popen([sys.executable, "-c", COUNTER], env=env, text=True, stdin=-1, stdout=-1) as counter:

        def count():
            counter.stdin.write("\n")
            counter.stdin.flush()
            return int(counter.stdout.readline())

        try:
            for number, left in ((4, 3), (3, 2), (2, 1), (1, 0)):
                move("DELETE", f"000{number}00")
                until(lambda left=left: count() == left, f"{left} GPUs")
            for number, there in ((1, 1), (2, 2), (3, 3), (4, 4)):
                move("POST", f"000{number}00", hostport="1")
                until(lambda there=there: count() == there, f"{there} GPUs")
        finally:
            counter.stdin.close()
