"""GPUs in MIG mode: what of a host is asked when, what the node's book and the choice of candidates make of it."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil

import pytest

from mews.harness.clock import run_virtual
from mews.kube.clock import Clock
from mews.kube.component import Context
from mews.kube.system.files import FolderTree
from mews.kube.system.gpu_driver import DriverRefusalError, NvidiaSmi
from mews.kube.system.host_steps import HostSteps
from mews.systems.kubecomp import policy
from mews.systems.kubecomp.config import Timing
from mews.systems.kubecomp.mig_modes import MigModes
from mews.systems.kubecomp.node_devices import LocalDevice
from mews.systems.kubecomp.policy import Claim, Gpu, NodeHoldings
from mews.systems.kubecomp.records import NodeReport, node_report, report_data
from tests.systems.kubecomp.test_node_devices import node, shown

HERE = [LocalDevice(f"0-{name}", f"GPU-{name}", "A", name) for name in "abc"]
HALF, FREE = ("0000:01:00.0", True), ("0000:02:00.0", False)


class Steps:
    """A host: ``found`` by its files, ``on`` by its driver."""

    def __init__(self):
        self.found = {"GPU-a": HALF, "GPU-b": FREE}
        self.on = frozenset[str]()
        self.asked = self.looks = 0

    async def divisible(self, uuids):
        self.looks += 1
        if isinstance(self.found, OSError):
            raise self.found
        return {uuid: place for uuid, place in self.found.items() if uuid in uuids}

    async def in_mig_mode(self):
        self.asked += 1
        if isinstance(self.on, Exception):
            raise self.on
        return self.on


class Kube:
    """Takes the events."""

    def __init__(self):
        self.told = []

    async def create(self, resource, body, **more):
        self.told.append(body["message"])
        return body


def play(scene, poll_s=5.0):
    async def run():
        steps, kube = Steps(), Kube()
        context = Context(kube, Clock(0.0), random.Random(1), logging.getLogger("mig"))
        modes = MigModes(context, "host-1", steps, poll_s=poll_s)
        posting = asyncio.create_task(modes.run())
        await scene(steps, modes)
        await asyncio.sleep(1)
        posting.cancel()
        return kube.told

    return run_virtual(run)


def test_instances_count_at_once_and_the_mode_when_the_driver_is_asked_again():
    async def scene(steps, modes):
        assert await modes.look(HERE, is_quiet=True) == {"GPU-a"}
        steps.on = {FREE[0]}
        assert await modes.look(HERE, is_quiet=True) == {"GPU-a"} and steps.asked == 1
        await asyncio.sleep(5)
        assert await modes.look(HERE, is_quiet=False) == {"GPU-a"} and steps.asked == 1
        assert await modes.look(HERE, is_quiet=True) == {"GPU-a", "GPU-b"}
        steps.found["GPU-a"] = (HALF[0], False)
        assert await modes.look(HERE, is_quiet=True) == {"GPU-a", "GPU-b"}  # the mode may still be on
        await asyncio.sleep(5)
        assert await modes.look(HERE, is_quiet=True) == {"GPU-b"}

    assert play(scene) == [f"GPU GPU-{name} is not offered: it is in MIG mode" for name in "ab"]


@pytest.mark.parametrize("trouble", [DriverRefusalError("busy"), TimeoutError()])
def test_while_driver_or_files_do_not_answer_the_last_answer_stands(trouble):
    async def scene(steps, modes):
        steps.on = {FREE[0]}
        before = await modes.look(HERE, is_quiet=True)
        await asyncio.sleep(5)
        steps.on = trouble
        assert await modes.look(HERE, is_quiet=True) == before == {"GPU-a", "GPU-b"}
        steps.found = OSError("no files")
        assert await modes.look(HERE, is_quiet=True) == before

    play(scene)


def test_a_gpu_that_left_is_none_and_a_host_without_mig_is_not_asked():
    async def scene(steps, modes):
        steps.on = {FREE[0]}
        assert await modes.look(HERE, is_quiet=True) == {"GPU-a", "GPU-b"}
        assert await modes.look(HERE[:1], is_quiet=True) == {"GPU-a"}
        steps.found = {}
        await asyncio.sleep(5)
        assert await modes.look(HERE, is_quiet=True) == frozenset() and steps.asked == 1

    play(scene)


def test_gpus_that_cannot_be_divided_are_looked_at_once_and_others_again():
    async def scene(steps, modes):
        steps.found = {"GPU-c": HALF}
        for _ in range(3):
            assert await modes.look(HERE[:2], is_quiet=True) == frozenset()
        assert steps.looks == 1
        for _ in range(2):
            assert await modes.look(HERE, is_quiet=True) == {"GPU-c"}
        assert steps.looks == 3
        assert await modes.look(HERE[:2], is_quiet=True) == frozenset() and steps.looks == 4

    play(scene)


def test_without_a_period_the_driver_is_never_asked():
    async def scene(steps, modes):
        assert await modes.look(HERE, is_quiet=True) == {"GPU-a"} and steps.asked == 0

    play(scene, poll_s=None)


def test_a_divided_gpu_is_announced_as_unhealthy_until_it_is_whole():
    book = node()
    assert shown(book)["0-b"] == "Healthy"
    book.divide(frozenset({"GPU-0-b"}))
    assert shown(book) == {"0-a": "Healthy", "0-b": "Unhealthy", "0-c": "Healthy"}
    assert book.divided() == ("0-b",) and book.why_not("0-b") == "is unhealthy"
    book.withhold(frozenset({"GPU-0-b"}))
    assert book.divided() == ()  # it is broken, too: it must not be moved
    book.withhold(frozenset())
    book.divide(frozenset())
    assert shown(book)["0-b"] == "Healthy" and book.divided() == ()


def test_the_drivers_files_tell_what_can_be_divided_and_what_is(tmp_path):
    bridge, cards = tmp_path / "sys/devices/pci0000:00/0000:00:01.0", tmp_path / "sys/bus/pci/devices"
    cards.mkdir(parents=True)
    for number in range(3):  # the last one has no MIG
        bdf = f"0000:0{number + 1}:00.0"
        (bridge / bdf).mkdir(parents=True)
        (bridge / bdf / "uevent").write_text("DRIVER=nvidia\n")
        (bridge / bdf / "config").write_bytes(b"\xde\x10")
        (cards / bdf).symlink_to(f"../../../devices/pci0000:00/0000:00:01.0/{bdf}")
        told = tmp_path / "proc/driver/nvidia/gpus" / bdf
        told.mkdir(parents=True)
        (told / "information").write_text(f"GPU UUID: \t GPU-{'abc'[number]}\nDevice Minor: \t {number}\n")
        if number < 2:
            (tmp_path / f"proc/driver/nvidia/capabilities/gpu{number}/mig").mkdir(parents=True)
    steps = HostSteps(FolderTree(tmp_path), None, Timing())
    wanted = ("GPU-a", "GPU-b", "GPU-c", "GPU-d")
    assert asyncio.run(steps.divisible(wanted)) == {"GPU-a": ("0000:01:00.0", False), "GPU-b": FREE}
    (tmp_path / "proc/driver/nvidia/capabilities/gpu0/mig/gi9").mkdir()
    assert asyncio.run(steps.divisible(wanted)) == {"GPU-a": HALF, "GPU-b": FREE}
    assert asyncio.run(steps.in_mig_mode()) == frozenset()
    shutil.rmtree(tmp_path / "proc/driver/nvidia/capabilities")
    assert asyncio.run(steps.divisible(wanted)) == {}


def test_a_report_names_divided_gpus_only_where_there_are_any():
    report = NodeReport(announced=("0-a",), unhealthy=("0-b",), divided=("0-b",))
    assert node_report({"data": report_data(report)}) == report
    assert "divided" not in report_data(NodeReport())["report"]


def found(*gpus, req=0):
    claims = {"n": [Claim("default/p", "n", req, bound=True)]} if req else {}
    return policy.candidates(gpus, "t", holdings={"n": NodeHoldings(fresh=True)}, claims=claims)


def test_a_divided_gpu_is_taken_last_and_serves_none_of_its_nodes_pods():
    first, second, last = (Gpu(f"0-{name}", "n", "1", divided=name == "a") for name in "abc")
    assert policy.ranked(found(first, second, last)) == (second, last, first)
    assert found(first, second, last, req=1) == (first, second)
    assert found(first, last, req=1) == (first,)


def test_nvidia_smi_is_asked_by_its_own_addresses(tmp_path):
    program = tmp_path / "nvidia-smi"
    rows = "00000000:44:00.0, Enabled\n00000000:45:00.0, Disabled\n00000001:AF:00.0, Enabled\n00000000:46:00.0, [N/A]"
    asked = "--query-gpu=pci.bus_id,mig.mode.current --format=csv,noheader"
    program.write_text(f'#!/bin/sh\n[ "$*" = "{asked}" ] && echo "{rows}"\n')
    program.chmod(0o755)
    assert asyncio.run(NvidiaSmi(str(program)).divided()) == {"0000:44:00.0", "0001:af:00.0"}
