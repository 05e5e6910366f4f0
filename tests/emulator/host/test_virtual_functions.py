"""Virtual functions come and go by writes into ``sriov_numvfs``, and are refused as a kernel refuses them."""

import errno

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.host.entries import Link
from mews.emulator.host.errors import (
    BadWriteError,
    DeviceInUseError,
    HostRefusalError,
    NotConfigurableError,
    OutOfRangeError,
)
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.tree import HostTree
from mews.emulator.inventory.reading import parse_hardware
from tests.emulator.host.bench import Pair
from tests.emulator.host.fixture_hosts import DEVICES, sysfs_level, sysfs_path, tree_of


class Adapter:
    """The adapter of a server, and its files."""

    def __init__(self, tree, device="nic-0"):
        self.tree, self.host = tree, tree.host
        self.function = tree.host.bus.holding(device)
        self.bdf = self.function.bdf
        self.folder = f"{DEVICES}/{self.bdf}"

    def write(self, name, text, at_s=0.0):
        return self.tree.write(f"{self.folder}/{name}", text, at_s)

    def read(self, name):
        return self.tree.read(f"{self.folder}/{name}").decode().strip()

    def virtual(self):
        names = [name for name in self.tree.names(self.folder) if name.startswith("virtfn")]
        return [self.tree.target(f"{self.folder}/{name}").removeprefix("../") for name in sorted(names)]

    def driver(self, bdf):
        return self.tree.target(f"{DEVICES}/{bdf}/driver").rpartition("/")[2]


@pytest.fixture
def adapter():
    return Adapter(tree_of("seed-004", "rdma-fpga"))


def test_an_adapter_has_as_many_as_its_firmware_allows_and_none_at_first(adapter):
    assert (adapter.read("sriov_totalvfs"), adapter.read("sriov_numvfs"), adapter.virtual()) == ("8", "0", [])
    assert (adapter.read("vendor"), adapter.read("device"), adapter.read("class")) == ("0x15b3", "0x101b", "0x020700")


def test_a_number_makes_them_each_a_function_with_its_driver_beside_its_physical_one(adapter):
    assert adapter.write("sriov_numvfs", "3\n").done
    bus = adapter.bdf.rpartition(".")[0]
    assert adapter.virtual() == [f"{bus}.{n}" for n in (1, 2, 3)]
    for bdf in adapter.virtual():
        folder = f"{DEVICES}/{bdf}"
        assert adapter.tree.target(f"{folder}/physfn") == f"../{adapter.bdf}"
        assert adapter.tree.read(f"{folder}/device") == b"0x101c\n"
        assert adapter.tree.read(f"{folder}/numa_node") == adapter.tree.read(f"{adapter.folder}/numa_node")
        assert adapter.driver(bdf) == "mlx5_core"
        assert sysfs_path(adapter.tree, bdf)[:-1] == sysfs_path(adapter.tree, adapter.bdf)[:-1]
        assert sysfs_level(adapter.tree, bdf, adapter.bdf) == "PIX"
        assert "sriov_numvfs" not in adapter.tree.names(folder)
    assert adapter.read("sriov_numvfs") == "3"
    for path, node in adapter.tree.walk():
        if isinstance(node, Link):
            adapter.tree.find(path)


def test_rdma_programs_find_each_of_them(adapter):
    assert adapter.tree.names("sys/class/infiniband") == ["mlx5_0"]
    adapter.write("sriov_numvfs", "2")
    assert adapter.tree.names("sys/class/infiniband") == ["mlx5_0", "mlx5_1", "mlx5_2"]
    assert adapter.tree.names("dev/infiniband") == [
        "rdma_cm", "umad0", "umad1", "umad2", "uverbs0", "uverbs1", "uverbs2"
    ]  # fmt: skip
    second = adapter.virtual()[1]
    assert adapter.tree.names(f"{DEVICES}/{second}/infiniband") == ["mlx5_2"]
    assert adapter.tree.read("sys/class/infiniband/mlx5_2/device/device") == b"0x101c\n"
    assert adapter.tree.read("sys/class/infiniband/mlx5_2/ports/1/state") == b"4: ACTIVE\n"
    guids = {adapter.tree.read(f"sys/class/infiniband/mlx5_{n}/node_guid") for n in range(3)}
    assert len(guids) == 3
    assert adapter.tree.read("sys/class/infiniband_verbs/uverbs2/ibdev") == b"mlx5_2\n"
    assert adapter.tree.read("sys/class/infiniband_verbs/uverbs2/dev") == b"231:194\n"


def test_zero_takes_them_away_and_another_number_needs_that_first(adapter):
    adapter.write("sriov_numvfs", "2")
    assert adapter.write("sriov_numvfs", "2").done
    with pytest.raises(DeviceInUseError):
        adapter.write("sriov_numvfs", "3")
    assert adapter.read("sriov_numvfs") == "2"
    assert adapter.write("sriov_numvfs", "0").done
    assert (adapter.virtual(), adapter.tree.names("sys/class/infiniband")) == ([], ["mlx5_0"])
    assert adapter.write("sriov_numvfs", "8").done
    assert adapter.virtual()[-1] == f"{adapter.bdf[:-4]}01.0"


@pytest.mark.parametrize(
    ("text", "refusal", "code"),
    [
        ("9", OutOfRangeError, errno.ERANGE),
        ("99999999999", OutOfRangeError, errno.ERANGE),
        ("-1", BadWriteError, errno.EINVAL),
        ("two", BadWriteError, errno.EINVAL),
        ("", BadWriteError, errno.EINVAL),
        ("1.0", BadWriteError, errno.EINVAL),
    ],
)
def test_a_number_that_is_none_or_too_large_is_refused(adapter, text, refusal, code):
    before = adapter.host.versions.all
    with pytest.raises(refusal) as refused:
        adapter.write("sriov_numvfs", text)
    assert refused.value.errno == code
    assert (adapter.host.versions.all, adapter.virtual()) == (before, [])


def test_without_its_driver_an_adapter_makes_none_and_those_it_had_are_gone(adapter):
    adapter.write("sriov_numvfs", "2")
    adapter.tree.write("sys/bus/pci/drivers/mlx5_core/unbind", adapter.bdf, 0.0)
    assert (adapter.read("sriov_numvfs"), adapter.virtual()) == ("0", [])
    assert "infiniband" not in adapter.tree.names("sys/class")
    with pytest.raises(NotConfigurableError) as refused:
        adapter.write("sriov_numvfs", "2")
    assert refused.value.errno == errno.ENOENT
    adapter.tree.write("sys/bus/pci/drivers/mlx5_core/bind", adapter.bdf, 0.0)
    assert adapter.write("sriov_numvfs", "2").done
    assert len(adapter.virtual()) == 2


def test_nvidias_driver_makes_none_of_a_gpu():
    gpu = Adapter(tree_of("seed-004", "nvswitch"), "0")
    assert int(gpu.read("sriov_totalvfs")) > 0
    with pytest.raises(NotConfigurableError):
        gpu.write("sriov_numvfs", "1")
    assert gpu.write("sriov_numvfs", "0").done


def test_another_driver_takes_one_of_them(adapter):
    adapter.write("sriov_numvfs", "2")
    first, second = adapter.virtual()
    adapter.tree.write(f"{DEVICES}/{first}/driver_override", "vfio-pci", 0.0)
    adapter.tree.write("sys/bus/pci/drivers/mlx5_core/unbind", first, 0.0)
    adapter.tree.write("sys/bus/pci/drivers/vfio-pci/bind", first, 0.0)
    assert (adapter.driver(first), adapter.driver(second)) == ("vfio-pci", "mlx5_core")
    assert adapter.tree.names("sys/class/infiniband") == ["mlx5_0", "mlx5_2"]
    assert adapter.host.view()["devices"]["rdma-fpga-nic-0"]["virtual_functions"] == [
        {"bdf": first, "driver": "vfio-pci"},
        {"bdf": second, "driver": "mlx5_core"},
    ]


def test_without_autoprobe_they_come_without_a_driver(adapter):
    adapter.write("sriov_drivers_autoprobe", "0")
    assert adapter.write("sriov_numvfs", "1").done
    [only] = adapter.virtual()
    with pytest.raises(FileNotFoundError):
        adapter.driver(only)
    adapter.tree.write("sys/bus/pci/drivers/mlx5_core/bind", only, 0.0)
    assert adapter.driver(only) == "mlx5_core"
    with pytest.raises(BadWriteError):
        adapter.write("sriov_drivers_autoprobe", "maybe")


def test_one_that_is_removed_stays_away_until_they_are_made_anew(adapter):
    adapter.write("sriov_numvfs", "2")
    first, second = adapter.virtual()
    adapter.tree.write(f"{DEVICES}/{first}/remove", "1", 0.0)
    adapter.tree.write("sys/bus/pci/rescan", "1", 0.0)
    assert (adapter.virtual(), adapter.read("sriov_numvfs")) == ([second], "2")
    adapter.write("sriov_numvfs", "0")
    adapter.write("sriov_numvfs", "2")
    assert adapter.virtual() == [first, second]


def test_they_go_with_an_adapter_that_is_removed_and_do_not_come_back_with_it(adapter):
    adapter.write("sriov_numvfs", "2")
    gone = adapter.virtual()
    adapter.write("remove", "1")
    assert not set(gone) & set(adapter.tree.names(DEVICES))
    adapter.tree.write("sys/bus/pci/rescan", "1", 0.0)
    assert adapter.read("sriov_numvfs") == "0"


def test_they_fall_off_the_bus_with_their_adapter(adapter):
    adapter.write("sriov_numvfs", "1")
    [only] = adapter.virtual()
    adapter.host.bring_up.fall(adapter.function)
    assert set(adapter.tree.read(f"{DEVICES}/{only}/config")) == {0xFF}
    assert adapter.tree.read("sys/class/infiniband/mlx5_1/ports/1/state") == b"1: DOWN\n"


def test_an_adapter_of_a_chassis_that_is_pulled_out_takes_them_along():
    pair = Pair(kinds=("GPU", "NIC", "FPGA", "GPU"))
    bdf = pair.device("000002").bdf
    pair.tree.write(f"{DEVICES}/{bdf}/sriov_numvfs", "2", 0.0)
    assert len(pair.tree.names("sys/class/infiniband")) == 3
    pair.move("000002", "1", "2")
    assert not [name for name in pair.tree.names(DEVICES) if name.startswith(bdf[:-1])]
    there = HostTree(pair.other)
    assert there.names("sys/class/infiniband") == ["mlx5_0"]


def test_the_write_waits_until_their_drivers_have_them():
    document = {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": "slow"},
        "hosts": [
            {
                "name": "host-1",
                "profile": {"function": 0.5, "driver": 1.5},
                "devices": [{"id": "nic", "uuid": "NIC-1", "kind": "RDMA", "virtual_functions": 4}],
            }
        ],
        "chassis": [{"name": "A", "ports": {"1": None}}],
    }
    hosts = Hosts(parse_hardware(document, "test"), EmulationContext(0))
    hosts.begin(0.0)
    nic = Adapter(HostTree(hosts.host("host-1")), "nic")
    assert nic.read("sriov_totalvfs") == "4"
    pending = nic.write("sriov_numvfs", "4")
    assert not pending.done
    nic.host.settle(1.9)
    assert (pending.done, len(nic.virtual())) == (False, 4)
    nic.host.settle(2.0)
    assert pending.done
    again = nic.write("sriov_numvfs", "0", 2.0)
    assert again.done
    nic.write("sriov_numvfs", "2", 2.0)
    nic.write("sriov_numvfs", "0", 2.1)
    nic.host.settle(9.0)
    assert (nic.virtual(), nic.host.view()["waiting"]) == ([], [])


class Lifecycle(RuleBasedStateMachine):
    """Any order of writes: what sysfs shows is always one state, and a refused write changes nothing."""

    def __init__(self):
        super().__init__()
        self.adapter = Adapter(tree_of("seed-004", "rdma-fpga"))
        self.count, self.bound, self.there = 0, True, True

    def _try(self, path, text):
        try:
            self.adapter.tree.write(path, text, 0.0)
        except (HostRefusalError, FileNotFoundError) as refusal:
            return type(refusal)
        return None

    @precondition(lambda self: self.there)
    @rule(count=st.integers(0, 10))
    def number(self, count):
        refused = self._try(f"{self.adapter.folder}/sriov_numvfs", str(count))
        expected = (
            OutOfRangeError if count > 8
            else None if count == self.count
            else NotConfigurableError if not self.bound
            else DeviceInUseError if count and self.count
            else None
        )  # fmt: skip
        assert refused is expected
        self.count = self.count if refused else count

    @precondition(lambda self: self.there)
    @rule(bind=st.booleans())
    def driver(self, bind):
        self._try(f"sys/bus/pci/drivers/mlx5_core/{'bind' if bind else 'unbind'}", self.adapter.bdf)
        self.bound = bind
        self.count = self.count if bind else 0

    @rule()
    def remove(self):
        if self.there:
            self.adapter.write("remove", "1")
        self.there, self.bound, self.count = False, False, 0

    @rule()
    def rescan(self):
        self.adapter.tree.write("sys/bus/pci/rescan", "1", 0.0)
        self.bound = self.bound or not self.there
        self.there = True

    @invariant()
    def one_state(self):
        shown = [name for name in self.adapter.tree.names(DEVICES) if name.startswith(self.adapter.bdf[:-4])]
        assert (self.adapter.bdf in shown) == self.there
        assert len(shown) == self.count + self.there
        classes = self.adapter.tree.names("sys/class")
        rdma = self.adapter.tree.names("sys/class/infiniband") if "infiniband" in classes else []
        assert len(rdma) == (self.count + 1 if self.bound else 0)
        if self.there:
            assert self.adapter.read("sriov_numvfs") == str(self.count)
            assert len(self.adapter.virtual()) == self.count


TestLifecycle = Lifecycle.TestCase
TestLifecycle.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
