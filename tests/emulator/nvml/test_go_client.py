"""A Go program on NVIDIA's own bindings (go-nvml), which load the library with dlopen."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mews.emulator.nvml.state import NvmlEvent
from tests.emulator.nvml.hosts import gpu, uuid_of

SOURCE = Path(__file__).parent / "goclient"
BUILD_LIMIT_S = 180


def built():
    """The program, from a cache folder if it was built before; without Go or its modules the test is skipped."""
    told = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(SOURCE.iterdir()))).hexdigest()[:16]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = base / "mews" / f"goclient-{told}" / "goclient"
    if program.exists():
        return program
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    program.parent.mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-o", str(program), "."]
    environment = {**os.environ, "CGO_ENABLED": "1", "GOFLAGS": "-mod=readonly"}
    try:
        subprocess.run(
            command, cwd=SOURCE, check=True, capture_output=True, text=True, timeout=BUILD_LIMIT_S, env=environment
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"go build took more than {BUILD_LIMIT_S} s")
    except subprocess.CalledProcessError as error:
        if "dial tcp" in error.stderr or "proxy" in error.stderr or "C compiler" in error.stderr:
            pytest.skip(f"go build: {error.stderr.splitlines()[-1]}")
        raise AssertionError(error.stderr) from error
    return program


@pytest.mark.wall
def test_a_go_program_lists_the_gpus_and_sees_an_xid(host):
    program = built()
    host.show(gpu(0), gpu(1, "H100"))
    child = subprocess.Popen([program], stdout=subprocess.PIPE, text=True, env=host.environment())
    with child, child.stdout as told:
        try:
            assert told.readline() == f"{uuid_of(0)} Tesla V100-PCIE-32GB 32768 7.0 0:10 0 mig=Not Supported\n"
            assert told.readline() == f"{uuid_of(1)} NVIDIA H100 PCIe 81559 9.0 0:11 1 mig=Success\n"
            assert told.readline() == "mig device: Not Found\n"
            assert told.readline() == "waiting\n"
            host.show(gpu(0, lost=True), gpu(1, "H100"), events=(NvmlEvent(1, "xid", gpu(0).bus_id, 79),))
            assert told.readline() == f"xid 79 on {uuid_of(0)}\n"
            assert child.wait(10) == 0
        finally:
            child.kill()
