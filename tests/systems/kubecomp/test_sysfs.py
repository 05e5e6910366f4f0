"""DevMgr believes the chassis about a device once the host's files show it with a driver."""

import asyncio

import pytest

from mews.kube.system.files import FolderTree
from mews.kube.system.sysfs import SysfsConfirm
from mews.kube.system.vital_product_data import vendor_field
from mews.systems.kubecomp.host_view import HostView
from mews.systems.kubecomp.node_devices import LocalDevice

UUID = "GPU-16a0c321-0000-4000-8000-000000000001"


def gpu(uuid=UUID):
    return LocalDevice("0-001300", uuid, "A", "001300")


@pytest.fixture
def root(tmp_path):
    for bdf, uuid in (("0000:20:00.0", "GPU-other"), ("0000:44:00.0", UUID)):
        (tmp_path / "sys/bus/pci/devices" / bdf).mkdir(parents=True)
        (tmp_path / "sys/bus/pci/devices" / bdf / "config").write_bytes(b"\xde\x10" + bytes(62))
        (tmp_path / "sys/bus/pci/devices" / bdf / "uevent").write_text("DRIVER=nvidia\nPCI_CLASS=30200\n")
        (tmp_path / "proc/driver/nvidia/gpus" / bdf).mkdir(parents=True)
        (tmp_path / "proc/driver/nvidia/gpus" / bdf / "information").write_text(f"Model: V100\nGPU UUID: {uuid}\n")
    return tmp_path


def confirmed(root, *devices):
    async def main():
        confirm = SysfsConfirm(FolderTree(root))
        return [await confirm.sees(device.uuid) for device in devices]

    return asyncio.run(main())


def test_a_gpu_is_confirmed_by_its_uuid(root):
    assert confirmed(root, gpu(), gpu("GPU-nobody"), gpu("")) == [True, False, False]


def test_without_a_driver_it_is_not(root):
    (root / "sys/bus/pci/devices/0000:44:00.0/uevent").write_text("PCI_CLASS=30200\n")
    assert confirmed(root, gpu()) == [False]


def test_one_that_reads_as_ones_has_fallen_off_the_bus(root):
    (root / "sys/bus/pci/devices/0000:44:00.0/config").write_bytes(b"\xff" * 64)
    assert confirmed(root, gpu()) == [False]


def test_one_that_moved_to_another_address_is_found_there(root):
    async def main():
        confirm = SysfsConfirm(FolderTree(root))
        before = await confirm.sees(gpu().uuid)
        for place in ("sys/bus/pci/devices", "proc/driver/nvidia/gpus"):
            (root / place / "0000:44:00.0").rename(root / place / "0000:45:00.0")
        return before, await confirm.sees(gpu().uuid)

    assert asyncio.run(main()) == (True, True)


def test_where_there_is_no_sysfs_nothing_is_confirmed(tmp_path):
    assert confirmed(tmp_path, gpu()) == [False]


class Broken:
    """A tree whose mount has died."""

    def __init__(self, tree):
        self.tree, self.dead = tree, False

    def hardware_version(self):
        return None

    async def read(self, path):
        if self.dead:
            raise OSError(107, "Transport endpoint is not connected")
        return await self.tree.read(path)

    async def names(self, path):
        return await self.tree.names(path)


def test_while_the_files_cannot_be_read_at_all_the_last_answer_stands(root):
    async def main():
        tree = Broken(FolderTree(root))
        confirm = SysfsConfirm(tree)
        first = await confirm.sees(gpu().uuid)
        tree.dead = True
        return first, await confirm.sees(gpu().uuid), await confirm.sees(gpu("GPU-other").uuid)

    assert asyncio.run(main()) == (True, True, False)


@pytest.mark.parametrize("vpd", [b"", b"\x82", b"\x82\x04\x00V100", b"\x90\xff\x00SN", b"\xff" * 40])
def test_broken_vital_product_data_is_no_error(vpd):
    assert vendor_field(vpd) == ""


class Counted(Broken):
    """A host that counts its changes."""

    def __init__(self, tree):
        super().__init__(tree)
        self.changes, self.reads = 0, 0

    def hardware_version(self):
        return self.changes

    async def read(self, path):
        self.reads += 1
        return await super().read(path)


def test_an_answer_stands_until_the_host_counts_a_change_and_not_longer(root):
    async def main():
        tree = Counted(FolderTree(root))
        confirm = SysfsConfirm(tree)
        devices = [gpu()]
        answers = [bool(await confirm(devices))]
        (root / "sys/bus/pci/devices/0000:44:00.0/uevent").write_text("PCI_CLASS=30200\n")
        reads = tree.reads
        answers.append(bool(await confirm(devices)))
        assert tree.reads == reads
        tree.changes += 1
        answers.append(bool(await confirm(devices)))
        return answers

    assert asyncio.run(main()) == [True, True, False]


def test_what_could_not_be_read_is_looked_at_again_though_nothing_changed(root):
    async def main():
        tree = Counted(FolderTree(root))
        tree.dead = True
        confirm = SysfsConfirm(tree)
        devices = [gpu()]
        first = bool(await confirm(devices))
        tree.dead = False
        return first, bool(await confirm(devices))

    assert asyncio.run(main()) == (False, True)


def test_a_device_without_a_uuid_is_not_looked_for(root):
    async def main():
        devices = [gpu(""), gpu("GPU-nobody"), gpu()]
        return await SysfsConfirm(FolderTree(root))(devices)

    assert [device.uuid for device in asyncio.run(main())] == ["", UUID]


def strays(root, *looks, others=()):
    """What each look calls strays, as ``looks`` say what is on the ports, and how often that was told."""
    told = []

    async def main():
        view, shown = HostView(SysfsConfirm(FolderTree(root)), lambda: told.append(1)), []
        for here in looks:
            await view.look(here, lambda: others)
            shown.append(view.strays)
        return shown, len(told)

    return asyncio.run(main())


def test_a_device_that_the_table_takes_off_the_ports_is_looked_for_until_it_comes_back_or_has_gone(root):
    here, none = [gpu()], []
    assert strays(root, here, none, none, here) == ([(), ("0-001300",), ("0-001300",), ()], 2)
    assert strays(root, [gpu("GPU-nobody")], none) == ([(), ()], 0)
    assert strays(root, none, others=[gpu()]) == ([("0-001300",)], 1)
    assert strays(root, here, none, others=[gpu("GPU-other")])[0] == [(), ("0-001300",)]


def test_a_device_that_goes_after_the_table_said_so_is_no_stray_any_more(root):
    async def main():
        view = HostView(SysfsConfirm(FolderTree(root)), lambda: None)
        await view.look([gpu()], lambda: ())
        await view.look(none := [], lambda: ())
        before = view.strays
        (root / "proc/driver/nvidia/gpus/0000:44:00.0").rename(root / "gone")
        await view.look(none, lambda: ())
        return before, view.strays

    assert asyncio.run(main()) == (("0-001300",), ())
