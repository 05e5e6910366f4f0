"""nvidia-smi mig, -mig, and where MIG devices are shown."""

import re
from xml.etree import ElementTree

import pytest

from mews.emulator.telemetry.load import parse_load
from tests.emulator.nvml.mig_host import H100, MigHost

MADE = "Successfully created compute instance ID"
ENDED = "Successfully destroyed GPU instance ID"
PROFILE_ROWS = """\
|   1  MIG 1g.10gb         19     7/7        9.75       No     16     1     0   |
|                                                               1     1     0   |
+-------------------------------------------------------------------------------+
"""
INSTANCES = """\
+---------------------------------------------------------+
| GPU instances:                                          |
| GPU   Name               Profile  Instance   Placement  |
|                            ID       ID       Start:Size |
|=========================================================|
|   1  MIG 1g.10gb           19       11          0:1     |
+---------------------------------------------------------+
|   1  MIG 3g.40gb            9        1          4:4     |
+---------------------------------------------------------+
"""
COMPUTE = """\
+--------------------------------------------------------------------+
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
|   1     11       MIG 1g.10gb          0         0          0:1     |
+--------------------------------------------------------------------+
|   1      1       MIG 1c.3g.40gb       0         0          2:1     |
+--------------------------------------------------------------------+
|   1      1       MIG 2c.3g.40gb       1         1          0:2     |
+--------------------------------------------------------------------+
"""
COMPUTE_PROFILES = """\
|   1      1       MIG 1c.3g.40gb       0      0/3           16        3     0     0   |
|                                                                      3     3         |
+--------------------------------------------------------------------------------------+
|   1      1       MIG 2c.3g.40gb       1      0/1           32        3     0     0   |
|                                                                      3     3         |
+--------------------------------------------------------------------------------------+
|   1      1       MIG 3g.40gb          2*     0/1           48        3     0     0   |
"""
BLOCK = """\
|==================+==================================+===========+=======================|
|  1    1   0   0  |              44MiB / 40448MiB    | 16      0 |  3   0    3    0    3 |
|                  |               0MiB / 65535MiB    |           |                       |
+------------------+                                  +-----------+-----------------------+
|  1    1   1   1  |                                  | 32      0 |  3   0    3    0    3 |
+------------------+----------------------------------+-----------+-----------------------+
|  1   11   0   2  |              11MiB /  9984MiB    | 16      0 |  1   0    1    0    1 |
|                  |               0MiB / 16383MiB    |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
"""


@pytest.fixture
def mig(host):
    with MigHost(host) as served:
        served.smi = host.smi
        yield served


@pytest.fixture
def divided(mig):
    """An H100 with a half, of which two programs have parts, and an eighth."""
    assert mig.smi("-i", "1", "-mig", "1")[0] == 0
    code, told = mig.smi("mig", "-i", "1", "-cgi", "9,1g.10gb")
    assert (code, told) == (0, (
        "Successfully created GPU instance ID  1 on GPU  1 using profile MIG 3g.40gb (ID  9)\n"
        "Successfully created GPU instance ID 11 on GPU  1 using profile MIG 1g.10gb (ID 19)\n"
    ))  # fmt: skip
    code, told = mig.smi("mig", "-gi", "1", "-cci", "0,2c.3g.40gb")
    assert (code, told) == (0, (
        f"{MADE}  0 on GPU  1 GPU instance ID  1 using profile MIG 1c.3g.40gb (ID  0)\n"
        f"{MADE}  1 on GPU  1 GPU instance ID  1 using profile MIG 2c.3g.40gb (ID  1)\n"
    ))  # fmt: skip
    assert mig.smi("mig", "-gi", "11", "-cci")[0] == 0
    return mig


def test_the_mode_is_switched_and_says_so(mig):
    code, told = mig.smi("-i", "1", "-mig", "1")
    assert code == 0 and told.startswith("Enabled MIG Mode for GPU 00000000:21:00.0\n")
    assert told.endswith("All done.\n") and "Warning: persistence mode is disabled" in told
    query = ("-i", "1", "--query-gpu=mig.mode.current,mig.mode.pending", "--format=csv,noheader")
    assert mig.smi(*query) == (0, "Enabled, Enabled\n")
    assert mig.smi("-i", "1", "-mig", "0")[1].startswith("Disabled MIG Mode for GPU")
    assert mig.smi("-i", "2", "-mig", "1") == (0, (
        "Unable to enable MIG Mode for GPU 00000000:22:00.0: Not Supported\n"
        "Treating as warning and moving on.\nAll done.\n"
    ))  # fmt: skip
    assert mig.smi("-i", "1", "-mig", "2")[0] == 2


def test_a_mode_that_must_wait_is_pending(mig):
    mig.pair.hold("000001", "monitor")
    code, told = mig.smi("-i", "0", "-mig", "1")
    assert code == 0
    assert told.startswith(
        "Warning: MIG mode is in pending enable state for GPU 00000000:20:00.0:In use by another client\n"
    )
    query = ("-i", "0", "--query-gpu=mig.mode.current,mig.mode.pending", "--format=csv,noheader")
    assert mig.smi(*query) == (0, "Disabled, Enabled\n")


def test_without_mig_nothing_is_listed(mig):
    assert mig.smi("mig", "-lgip") == (6, "No MIG-enabled devices found.\n")
    assert mig.smi("mig", "-lgi", "-i", "2") == (6, "No MIG-supported devices found.\n")
    mig.smi("-i", "1", "-mig", "1")
    assert mig.smi("mig", "-lgi") == (6, "No GPU instances found: Not Found\n")
    assert mig.smi("mig", "-dci") == (6, "No GPU instances found: Not Found\n")
    assert "|  No MIG devices found   " in mig.smi()[1]


@pytest.mark.parametrize("arguments", [(), ("-lgi", "-lci"), ("-cgi",), ("-C",), ("-x",), ("-lgi", "-C")])
def test_what_mig_does_not_take_is_refused(mig, arguments):
    assert mig.smi("mig", *arguments)[0] == 2


def test_profiles_and_placements_have_the_real_forms(mig):
    mig.smi("-i", "1", "-mig", "1")
    code, told = mig.smi("mig", "-lgip")
    assert code == 0 and PROFILE_ROWS in told
    assert {len(line) for line in told.splitlines()} == {81}
    code, told = mig.smi("mig", "-lgipp")
    assert told.splitlines()[:3] == [
        "GPU  1 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1",
        "GPU  1 Profile ID 20 Placements: {0,1,2,3,4,5,6}:1",
        "GPU  1 Profile ID 15 Placements: {0,2,4,6}:2",
    ]
    assert "GPU  1 Profile ID  0 Placement : {0}:8" in told


def test_instances_are_listed(divided):
    assert divided.smi("mig", "-lgi") == (0, INSTANCES)
    assert divided.smi("mig", "-lci") == (0, COMPUTE)
    code, told = divided.smi("mig", "-lcip", "-gi", "1")
    assert code == 0 and COMPUTE_PROFILES in told and {len(line) for line in told.splitlines()} == {88}
    assert divided.smi("mig", "-lcipp", "-gi", "1")[1].startswith("GPU  1 GI  1 Profile ID  0 Placements: {0,1,2}:1\n")
    assert "MIG 1g.10gb         19     3/7  " in divided.smi("mig", "-lgip")[1]


def test_a_program_stands_against_the_end_of_its_device(divided):
    _, compute = divided.function(H100).mig.devices()[0]
    divided.compute(compute.uuid)
    code, told = divided.smi("mig", "-dci", "-gi", "1")
    assert (code, told) == (255, (
        "Unable to destroy compute instance ID  0 from GPU  1 GPU instance ID  1: In use by another client\n"
        "Failed to destroy compute instances: In use by another client\n"
    ))  # fmt: skip
    divided.end()
    assert divided.smi("mig", "-dci", "-gi", "1", "-ci", "0") == (
        0, "Successfully destroyed compute instance ID  0 from GPU  1 GPU instance ID  1\n",
    )  # fmt: skip
    assert divided.smi("mig", "-dgi", "-gi", "1")[1].startswith(
        "Unable to destroy GPU instance ID  1 from GPU  1: In use"
    )
    assert divided.smi("mig", "-dci")[0] == 0
    assert divided.smi("mig", "-dgi") == (
        0, f"{ENDED} 11 from GPU  1\n{ENDED}  1 from GPU  1\n",
    )  # fmt: skip


def test_a_profile_without_room_and_an_unknown_one_stop_the_command(divided):
    assert divided.smi("mig", "-cgi", "9,19") == (255, (
        "Unable to create a GPU instance on GPU  1 using profile 9: Insufficient Resources\n"
        "Failed to create GPU instances: Insufficient Resources\n"
    ))  # fmt: skip
    assert divided.smi("mig", "-lgi") == (0, INSTANCES)
    assert divided.smi("mig", "-cgi", "5g.50gb") == (2, (
        "Unable to create a GPU instance on GPU  1 using profile 5g.50gb: Invalid Argument\n"
        "Failed to create GPU instances: Invalid Argument\n"
    ))  # fmt: skip


def test_a_placement_is_taken_and_the_default_compute_instance_made(divided):
    assert divided.smi("mig", "-cgi", "19:3", "-C") == (0, (
        "Successfully created GPU instance ID 14 on GPU  1 using profile MIG 1g.10gb (ID 19)\n"
        "Successfully created compute instance ID  0 on GPU  1 GPU instance ID 14 using profile MIG 1g.10gb (ID  0)\n"
    ))  # fmt: skip
    assert divided.smi("mig", "-cgi", "19:3")[0] == 255
    assert divided.smi("mig", "-cgi", "19:7")[0] == 2


def test_the_list_and_the_table_show_mig_devices(divided):
    uuids = [compute.uuid for _, compute in divided.function(H100).mig.devices()]
    lines = divided.smi("-L")[1].splitlines()
    assert lines[2:5] == [
        f"  MIG 1c.3g.40gb  Device  0: (UUID: {uuids[0]})",
        f"  MIG 2c.3g.40gb  Device  1: (UUID: {uuids[1]})",
        f"  MIG 1g.10gb     Device  2: (UUID: {uuids[2]})",
    ]
    divided.compute(uuids[2], pid=5001, load=parse_load({"utilization": 50, "memory_mib": 1000}), name="/usr/bin/train")
    table = divided.smi("-i", "1")[1]
    assert BLOCK.replace("  11MiB /  9984", "1011MiB /  9984") in table
    assert re.search(r"\|    1   11    0 +5001 +C   ", table)
    assert "|     N/A      Default |" in table
    assert {len(line) for line in table.splitlines() if line.startswith(("|", "+"))} == {91}


def test_the_details_show_mig_devices_as_text_and_as_xml(divided):
    root = ElementTree.fromstring(divided.smi("-q", "-x", "-i", "1")[1])
    found = [
        (one.findtext("index"), one.findtext("gpu_instance_id"), one.findtext("compute_instance_id"),
         one.findtext("device_attributes/shared/multiprocessor_count"), one.findtext("fb_memory_usage/total"))
        for one in root.iter("mig_device")
    ]  # fmt: skip
    assert found == [
        ("0", "1", "0", "16", "40448 MiB"), ("1", "1", "1", "32", "40448 MiB"), ("2", "11", "0", "16", "9984 MiB"),
    ]  # fmt: skip
    text = divided.smi("-q", "-i", "1")[1]
    assert text.count("    MIG Device\n") == 3 and "        GPU Instance ID                           : 11\n" in text
    other = ElementTree.fromstring(divided.smi("-q", "-x", "-i", "0")[1])
    assert other.findtext("gpu/mig_devices") == "None"
