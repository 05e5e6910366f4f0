"""Every file that the contract names is there, says what readers expect, and acts when it is written."""

import struct

import pytest
from msgspec.structs import replace

from mews.emulator.hardware.cards import card_of
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.host.entries import File, Folder, Link
from mews.emulator.host.errors import AlreadyBoundError, BadWriteError, NoSuchDeviceError
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.host.tree import HostTree
from mews.kube.system.vital_product_data import vendor_field
from tests.emulator.host.bench import Pair, hardware

DEVICES = "sys/bus/pci/devices"
CONTRACT = (
    "vendor", "device", "class", "subsystem_vendor", "subsystem_device", "numa_node", "local_cpulist", "config",
    "resource", "resource0", "revision", "irq", "modalias", "uevent", "driver_override", "reset",
    "remove", "rescan",
)  # fmt: skip


@pytest.fixture
def pair():
    return Pair(kinds=("GPU", "NIC", "FPGA", "GPU"))


def text(pair, path):
    return pair.tree.read(path).decode()


@pytest.mark.parametrize("name", CONTRACT)
def test_every_device_has_the_contracts_file(pair, name):
    for function in pair.host.bus.functions():
        assert isinstance(pair.tree.find(f"{DEVICES}/{function.bdf}/{name}"), File)


def test_devices_are_links_into_the_hierarchy_and_every_link_leads_somewhere(pair):
    links = [(path, node) for path, node in pair.tree.walk() if isinstance(node, Link)]
    assert len(links) > 10
    for path, _ in links:
        pair.tree.find(path)
    bdf = pair.device("000001").bdf
    assert pair.tree.target(f"{DEVICES}/{bdf}") == (
        f"../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/{bdf}"
    )


def test_a_path_finds_in_each_folder_what_its_list_has(pair):
    folders = [("", pair.tree.root), *((path, node) for path, node in pair.tree.walk() if isinstance(node, Folder))]
    assert sum(folder.leads_to is not None for _, folder in folders) > 3
    for path, folder in folders:
        listed = folder.children()
        found = {name: pair.tree.find(f"{path}/{name}", follow=False) for name in listed}
        assert {name: type(node) for name, node in found.items()} == {name: type(n) for name, n in listed.items()}
        with pytest.raises(FileNotFoundError):
            pair.tree.find(f"{path}/no-such-file")
        assert folder.leads_to is None or folder.leads_to().keys() <= listed.keys()


def test_what_was_in_a_folder_is_looked_up_anew_once_the_host_has_changed(pair):
    bdf = pair.device("000001").bdf
    slot = pair.device("000001").slot
    assert pair.tree.read(f"sys/bus/pci/slots/{slot}/power") == b"1\n"
    before = pair.tree.find(f"{DEVICES}/{bdf}")
    assert pair.tree.find(f"{DEVICES}/{bdf}") is before
    pair.tree.write(f"sys/bus/pci/slots/{slot}/power", "0", pair.t)
    assert pair.tree.read(f"sys/bus/pci/slots/{slot}/power") == b"0\n"
    with pytest.raises(FileNotFoundError):
        pair.tree.find(f"{DEVICES}/{bdf}")


def test_nfds_five_files_rule_holds(pair):
    """Node Feature Discovery skips a device that lacks one of the five, and reads each as a hexadecimal number."""
    for name in pair.tree.names(DEVICES):
        for attribute in ("class", "vendor", "device", "subsystem_vendor", "subsystem_device"):
            assert text(pair, f"{DEVICES}/{name}/{attribute}").strip().startswith("0x")


def test_config_agrees_with_the_other_files(pair):
    for function in pair.host.bus.functions():
        at = f"{DEVICES}/{function.bdf}"
        config = pair.tree.read(f"{at}/config")
        vendor, device = struct.unpack_from("<HH", config)
        subsystem = struct.unpack_from("<HH", config, 0x2C)
        assert len(config) == 4096
        assert f"0x{vendor:04x}\n" == text(pair, f"{at}/vendor")
        assert f"0x{device:04x}\n" == text(pair, f"{at}/device")
        assert f"0x{subsystem[0]:04x}\n" == text(pair, f"{at}/subsystem_vendor")
        assert f"0x{int.from_bytes(config[9:12], 'little'):06x}\n" == text(pair, f"{at}/class")
        first = int(text(pair, f"{at}/resource").split()[0], 16)
        assert struct.unpack_from("<I", config, 0x10)[0] & 0xFFFFFFF0 == first & 0xFFFFFFFF


def test_resource_has_thirteen_lines_and_sizes_that_are_powers_of_two(pair):
    for function in pair.host.bus.functions():
        lines = text(pair, f"{DEVICES}/{function.bdf}/resource").splitlines()
        assert len(lines) == 13
        spans = [(int(line.split()[0], 16), int(line.split()[1], 16)) for line in lines]
        sizes = [end - start + 1 for start, end in spans if end]
        assert sizes
        assert all(size & (size - 1) == 0 for size in sizes)


def test_proc_tells_what_the_container_toolkit_reads(pair):
    function = pair.device("000001")
    lines = text(pair, f"proc/driver/nvidia/gpus/{function.bdf}/information").splitlines()
    told = dict(line.split(":", 1) for line in lines)
    assert told["GPU UUID"].strip() == function.device.uuid
    assert told["Bus Location"].strip() == function.bdf
    assert told["Device Minor"].strip() == "0"
    wanted = {"Model", "IRQ", "GPU UUID", "Video BIOS", "Bus Type", "DMA Size", "DMA Mask", "Bus Location"}
    assert wanted | {"Device Minor", "GPU Firmware", "GPU Excluded"} == set(told)
    assert text(pair, "proc/driver/nvidia/version").startswith("NVRM version: ")
    assert "DeviceFileMode: 438" in text(pair, "proc/driver/nvidia/params")


def test_only_gpus_have_nodes_and_proc_entries_of_nvidias_driver(pair):
    assert pair.tree.names("dev") == ["infiniband", "nvidia-uvm", "nvidia0", "nvidiactl"]
    assert pair.tree.names("proc/driver/nvidia/gpus") == [pair.device("000001").bdf]


def test_what_is_no_gpu_bears_serial_and_unique_id_in_its_vital_product_data(pair):
    function = pair.device("000003")
    vpd = pair.tree.read(f"{DEVICES}/{function.bdf}/vpd")
    assert vendor_field(vpd) == function.device.uuid
    assert function.device.serial.encode() in vpd


def test_slots_tell_address_power_adapter_and_latch(pair):
    assert pair.tree.names("sys/bus/pci/slots") == ["1", "2", "3"]
    assert text(pair, "sys/bus/pci/slots/1/address") == f"{pair.device('000001').bdf[:-2]}\n"
    for name in ("power", "adapter", "latch"):
        assert text(pair, f"sys/bus/pci/slots/1/{name}") == "1\n"


def test_remove_and_rescan_take_a_device_out_and_in(pair):
    bdf = pair.device("000001").bdf
    assert pair.tree.write(f"{DEVICES}/{bdf}/remove", "1\n", 0.0).done
    assert bdf not in pair.tree.names(DEVICES)
    assert "nvidia0" not in pair.tree.names("dev")
    assert pair.tree.write("sys/bus/pci/rescan", "1", 0.0).done
    assert pair.tree.target(f"{DEVICES}/{bdf}/driver").endswith("/drivers/nvidia")


def test_a_bridge_rescans_what_is_below_it_only(pair):
    first, second = pair.device("000001"), pair.device("000002")
    for function in (first, second):
        pair.tree.write(f"{DEVICES}/{function.bdf}/remove", "1", 0.0)
    pair.tree.write(f"{DEVICES}/{first.bridge}/rescan", "1", 0.0)
    assert (first.has_function, second.has_function) == (True, False)


def test_the_slots_power_switches_the_device(pair):
    pair.tree.write("sys/bus/pci/slots/1/power", "0", 0.0)
    assert not pair.device("000001").has_function
    assert text(pair, "sys/bus/pci/slots/1/power") == "0\n"
    pair.tree.write("sys/bus/pci/rescan", "1", 0.0)
    assert not pair.device("000001").has_function
    pair.tree.write("sys/bus/pci/slots/1/power", "1", 0.0)
    assert pair.device("000001").healthy


def test_unbind_and_bind_take_the_driver_off_and_on(pair):
    bdf = pair.device("000001").bdf
    pair.tree.write("sys/bus/pci/drivers/nvidia/unbind", bdf, 0.0)
    assert bdf in pair.tree.names(DEVICES)
    assert "DRIVER=" not in text(pair, f"{DEVICES}/{bdf}/uevent")
    with pytest.raises(FileNotFoundError):
        pair.tree.target(f"{DEVICES}/{bdf}/driver")
    pair.tree.write("sys/bus/pci/drivers/nvidia/bind", bdf, 0.0)
    assert bdf in pair.tree.names("sys/bus/pci/drivers/nvidia")
    with pytest.raises(AlreadyBoundError):
        pair.tree.write("sys/bus/pci/drivers/nvidia/bind", bdf, 0.0)


@pytest.mark.parametrize(
    ("path", "said", "refusal"),
    [
        ("sys/bus/pci/rescan", "yes", BadWriteError),
        ("sys/bus/pci/drivers/nvidia/bind", "0000:ff:00.0", NoSuchDeviceError),
        ("sys/bus/pci/drivers/mlx5_core/bind", "0000:20:00.0", NoSuchDeviceError),
        ("sys/bus/pci/drivers/nvidia/unbind", "0000:21:00.0", NoSuchDeviceError),
        ("sys/bus/pci/slots/1/power", "2", BadWriteError),
        ("sys/bus/pci/devices/0000:20:00.0/vendor", "1", PermissionError),
        ("sys/bus/pci/nothing", "1", FileNotFoundError),
    ],
)
def test_nonsense_is_refused(pair, path, said, refusal):
    before = pair.host.versions.all
    with pytest.raises(refusal):
        pair.tree.write(path, said, 0.0)
    assert pair.host.versions.all == before


def test_a_device_that_fell_off_the_bus_reads_as_ones(pair):
    function = pair.device("000001")
    pair.host.bring_up.fall(function)
    assert set(pair.tree.read(f"{DEVICES}/{function.bdf}/config")) == {0xFF}
    assert function.bdf in pair.tree.names(DEVICES)


def test_another_driver_takes_it_where_it_is_told_to(pair):
    bdf = pair.device("000001").bdf
    pair.tree.write(f"{DEVICES}/{bdf}/driver_override", "vfio-pci\n", 0.0)
    pair.tree.write("sys/bus/pci/drivers/nvidia/unbind", bdf, 0.0)
    with pytest.raises(NoSuchDeviceError):
        pair.tree.write("sys/bus/pci/drivers/nvidia/bind", bdf, 0.0)
    pair.tree.write("sys/bus/pci/drivers/vfio-pci/bind", bdf, 0.0)
    assert (pair.device("000001").bound, pair.device("000001").minor) == ("vfio-pci", None)
    assert pair.tree.names("dev") == ["infiniband"]
    assert text(pair, f"{DEVICES}/{bdf}/driver_override") == "vfio-pci\n"


def test_virtual_functions_are_there_with_their_number_or_not_at_all(pair):
    """go-nvlib reads one and then demands the other."""
    for function in pair.host.bus.functions():
        files = pair.tree.names(f"{DEVICES}/{function.bdf}")
        shares = function.card.virtual_functions > 0
        assert ("sriov_totalvfs" in files, "sriov_numvfs" in files) == (shares, shares)
    assert "sriov_numvfs" in pair.tree.names(f"{DEVICES}/{pair.device('000001').bdf}"), "an A100"
    assert card_of("GPU", "V100").virtual_functions == card_of("GPU", "RTX 3090").virtual_functions == 0


def test_the_machine_is_named_as_firmware_names_it(pair):
    """gpu-feature-discovery makes its label nvidia.com/gpu.machine of product_name."""
    assert text(pair, "sys/class/dmi/id/product_name") == "Emulated Host\n"
    assert text(pair, "sys/class/dmi/id/sys_vendor") == "Mews\n"


def test_the_driver_is_the_release_of_the_hardware_file():
    document = hardware()
    newer = replace(document, hosts=tuple(replace(host, driver="580.105.08") for host in document.hosts))
    hosts = Hosts(newer, EmulationContext(0))
    hosts.begin(0.0)
    assert b"  580.105.08  " in HostTree(hosts.host("host-1")).read("proc/driver/nvidia/version")
    assert nvml_host(hosts.host("host-1")).driver_version == "580.105.08"
