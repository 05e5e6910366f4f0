"""The steps of a removal on served files, with nvidia-smi as a process per call: under FUSE and in a watched folder."""

import asyncio
import os
import subprocess
import sys

import pytest

from mews.kube.system.files import FolderTree
from mews.kube.system.gpu_driver import DriverMissingError, NvidiaSmi
from mews.kube.system.host_steps import HostSteps, RemovalRefusedError
from mews.systems.kubecomp.config import Timing
from tests.emulator.hostd.test_served_hosts import FUSE, Served, short_folder

pytestmark = pytest.mark.wall

UUID = "GPU-bea6c50f-2a45-ce4c-c6b6-805bedcb00f3"  # 000400 of the demo
HOLD = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).nvmlInit_v2(); print('held', flush=True); sys.stdin.read()"
WAYS = ["no", pytest.param("yes", marks=pytest.mark.skipif(FUSE is not None, reason=f"no FUSE: {FUSE}"))]


@pytest.fixture(params=WAYS)
def served(request):
    with short_folder() as folder:
        made = Served(folder, request.param)
        with made.chassis(), made.hosts():
            yield made


def steps_of(served, program=None, **timing):
    nvml = served.folder / "h" / "host-1"
    return HostSteps(FolderTree(served.files), NvidiaSmi(program or str(nvml / "nvidia-smi")), Timing(**timing))


async def back(steps, bridge):
    await steps.rescan([bridge], kept_out=[])
    async with asyncio.timeout(15):
        while (place := await steps.find(UUID)) is None or not place.driver:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return place


def test_a_gpu_goes_by_the_book_and_comes_back_as_it_was(served):
    async def walk():
        steps = steps_of(served)
        place = await steps.find(UUID)
        assert place is not None and place.driver == "nvidia" and place.minor == "3"
        driver = NvidiaSmi(str(served.folder / "h" / "host-1" / "nvidia-smi"))
        await driver.set_persistence(place.bdf, True)
        assert await steps.persistence(place)
        await steps.take_out(place)
        assert await steps.find(UUID) is None
        again = await back(steps, place.bridge)
        assert not await driver.draining(again.bdf)
        assert await steps.undrain(again, persistence=True)
        assert await steps.persistence(again)
        await driver.set_draining(place.bdf, False)

    asyncio.run(walk())
    assert "Xid" not in (served.files / "var/log/kern.log").read_text()


def test_a_process_with_nvml_open_is_named_and_keeps_its_gpu(served):
    nvml = served.folder / "h" / "host-1"
    library = str(nvml / "libnvidia-ml.so.1")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ)
    )

    async def refused():
        steps = steps_of(served, holder_patience_s=0.5)
        place = await steps.find(UUID)
        with pytest.raises(RemovalRefusedError, match=rf"^in use by .*python.* \(pid {holder.pid}\)$"):
            await steps.take_out(place)
        assert not await NvidiaSmi(str(nvml / "nvidia-smi")).draining(place.bdf)

    async def gone():
        steps = steps_of(served)
        await steps.take_out(await steps.find(UUID))
        assert await steps.find(UUID) is None

    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        asyncio.run(refused())
    finally:
        holder.communicate()
    asyncio.run(gone())
    assert "Xid" not in (served.files / "var/log/kern.log").read_text()


def test_where_nvidia_smi_is_missing_remove_is_all_there_is(served):
    async def walk():
        steps = steps_of(served, program=str(served.folder / "nothing"))
        with pytest.raises(DriverMissingError):
            await NvidiaSmi(str(served.folder / "nothing")).draining("0000:23:00.0")
        place = await steps.find(UUID)
        await steps.take_out(place)
        assert await steps.find(UUID) is None
        await back(steps, place.bridge)

    asyncio.run(walk())
