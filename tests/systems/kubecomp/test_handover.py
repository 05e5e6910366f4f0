"""When DevMgr says that its host does not have a device any more: of each request anew, by what was read since."""

import asyncio
import logging

from mews.kube.system.host_steps import HostPlace
from mews.systems.kubecomp.config import Timing
from mews.systems.kubecomp.handover import Handover
from mews.systems.kubecomp.holders import GpuHolders
from mews.systems.kubecomp.node_devices import LocalDevice, NodeDevices
from mews.systems.kubecomp.records import RemovedDevice, WithdrawRequest
from tests.systems.kubecomp.world import virtual

GPU = LocalDevice("0-000100", "GPU-1", "A", "000100")


class Steps:
    """A host that has the device or not, and takes it out at once."""

    def __init__(self):
        self.here = False
        self.taken_out = 0

    async def find(self, uuid):
        return HostPlace("0000:20:00.0", "", "nvidia", "0") if self.here else None

    async def persistence(self, place):
        return False

    async def take_out(self, place):
        self.here = False
        self.taken_out += 1

    async def rescan(self, bridges, *, kept_out):
        pass


class Node:
    def __init__(self):
        self.steps, self.book = Steps(), NodeDevices()
        self.book.holders = GpuHolders(known=True)

        async def write_ahead():
            pass

        log = logging.getLogger("test")
        self.handover = Handover(self.steps, self.book, Timing(), log, write_ahead=write_ahead, changed=lambda: None)

    def ask(self, request):
        self.book.asked({GPU.gpuid: WithdrawRequest(request, 1e9)}, now_s=0.0, claims=[])
        self.handover.may_go(self.book.unused(()))

    def read(self, *devices):
        """A reading that begins now, and ends."""
        self.handover.watch(devices, round_begun=self.book.round)
        self.book.round += 1

    async def says_it_is_off(self):
        task = asyncio.create_task(self.handover.run())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return GPU.gpuid in self.handover.off


@virtual
async def test_what_was_read_before_the_request_does_not_show_that_a_device_is_gone():
    node = Node()
    node.read()
    node.ask("first")
    assert not await node.says_it_is_off()
    node.handover.watch([], round_begun=node.book.round - 1)
    assert not await node.says_it_is_off(), "that reading had begun before"
    node.read()
    node.read()
    assert await node.says_it_is_off()


@virtual
async def test_a_device_that_came_back_between_two_requests_is_taken_out_for_the_second():
    node = Node()
    node.ask("first")
    node.read()
    node.read()
    assert await node.says_it_is_off()
    node.steps.here = True
    node.ask("second")
    assert not await node.says_it_is_off()
    node.read(GPU)
    assert await node.says_it_is_off()
    assert node.steps.taken_out == 1


@virtual
async def test_a_device_that_is_not_asked_for_any_more_is_not_said_to_be_off():
    node = Node()
    node.read(GPU)
    node.steps.here = True
    node.ask("first")
    assert await node.says_it_is_off()
    node.handover.may_go({})
    assert list(node.handover.off) == []


@virtual
async def test_what_is_off_the_bus_is_forgotten_only_once_its_chassis_was_read():
    node = Node()
    node.book.out[GPU.gpuid] = RemovedDevice(GPU.uuid, "0000:20:00.0", "0000:1f:00.0", persistence=False)
    node.handover.watch([], round_begun=0, is_whole=False)
    assert list(node.book.out) == [GPU.gpuid], "its chassis is down since this incarnation began"
    node.handover.watch([], round_begun=1)
    assert list(node.book.out) == []
