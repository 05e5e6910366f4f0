"""The checkpoint's text, its checksum, and where it is kept (contract kubelet.md section 6)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from mews.kube.deviceplugin.port import Allocation
from mews.kube.emulated.kubelet.devices import FileCheckpoint, MemoryCheckpoint
from mews.kube.emulated.kubelet.devices.checkpoint import Checkpoint, fnv32a, from_text, spew, to_text
from mews.kube.emulated.kubelet.devices.errors import CheckpointError
from mews.kube.emulated.kubelet.devices.holdings import Holding

ONE = Checkpoint(
    (
        Holding("u-1", "main", "example.com/res", {-1: ("dev-0",)}, Allocation({"A": "1"})),
        Holding("u-2", "side", "example.com/odd", {10: ("b",), 2: ("a", "b")}, Allocation()),
    ),
    {"example.com/res": ("dev-0", "dev-1"), "example.com/gone": ()},
)
"""Two pods; the second's devices have NUMA nodes, and its plugin answered with nothing."""


def real_files() -> list[str]:
    folder = os.environ.get("MEWS_DATA_DIR")
    if not folder or not (Path(folder) / "kubelet-1.34").is_dir():
        pytest.skip("MEWS_DATA_DIR is not set: no measured checkpoints here")
    texts = [p.read_text() for p in sorted((Path(folder) / "kubelet-1.34").iterdir()) if p.is_file()]
    return [text for dump in texts for text in re.findall(r'\{"Data":.*?"Checksum":\d+\}', dump)]


def test_real_checkpoints_verify_and_are_written_back_byte_for_byte():
    good = [text for text in real_files() if not text.endswith('"Checksum":1}')]
    assert len(set(good)) >= 5
    for text in good:
        assert to_text(from_text(text)) == text


def test_the_real_one_with_a_wrong_checksum_is_corrupted():
    [bad] = [text for text in real_files() if text.endswith('"Checksum":1}')]
    with pytest.raises(CheckpointError, match=r"^checkpoint is corrupted$"):
        from_text(bad)


def test_a_freshly_registered_resource_has_the_checksum_a_kubelet_wrote():
    """As a kubelet 1.34.2 wrote it after one list of four devices, without entries."""
    checkpoint = Checkpoint((), {"example.com/res": ("dev-0", "dev-1", "dev-2", "dev-3")})
    assert to_text(checkpoint) == (
        '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"example.com/res":["dev-0","dev-1","dev-2","dev-3"]}},'
        '"Checksum":715978619}'
    )


def test_the_hash_is_fnv_32a():
    assert fnv32a(b"") == 0x811C9DC5
    assert fnv32a(b"a") == 0xE40C292C
    assert fnv32a(b"foobar") == 0xBF9CF968


def test_the_hashed_form_names_types_and_sorts_maps():
    data = json.loads(to_text(ONE))["Data"]
    assert spew(data) == (
        "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)["
        "{PodUID:(string)u-1 ContainerName:(string)main ResourceName:(string)example.com/res "
        "DeviceIDs:(checkpoint.DevicesPerNUMA)map[-1:[dev-0]] AllocResp:([]uint8)[10 6 10 1 65 18 1 49]} "
        "{PodUID:(string)u-2 ContainerName:(string)side ResourceName:(string)example.com/odd "
        "DeviceIDs:(checkpoint.DevicesPerNUMA)map[2:[a b] 10:[b]] AllocResp:([]uint8)[]}] "
        "RegisteredDevices:(map[string][]string)map[example.com/gone:[] example.com/res:[dev-0 dev-1]]}"
    )
    nothing = {"PodDeviceEntries": None, "RegisteredDevices": None}
    assert spew(nothing) == (
        "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)<nil> "
        "RegisteredDevices:(map[string][]string)<nil>}"
    )


def test_a_checkpoint_is_read_back_as_it_was():
    assert from_text(to_text(ONE)) == ONE
    assert from_text(to_text(Checkpoint())) == Checkpoint()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "unexpected end of JSON input"),
        ("no json\n", "Expecting value at character 0"),
        ("{}", "checkpoint is corrupted"),
        ("[]", "checkpoint is corrupted"),
        ('{"Data":{"PodDeviceEntries":[{}],"RegisteredDevices":{}},"Checksum":1}', "checkpoint is corrupted"),
        (to_text(ONE).replace("dev-0", "dev-9", 1), "checkpoint is corrupted"),
        (to_text(ONE).replace("CgYKAUESATE=", "not base64!!", 1), "checkpoint is corrupted"),
    ],
)
def test_a_damaged_text_is_refused(text, words):
    with pytest.raises(CheckpointError) as refused:
        from_text(text)
    assert str(refused.value) == words


def test_the_file_is_private_and_replaced_as_a_whole(tmp_path):
    store = FileCheckpoint(tmp_path)
    with pytest.raises(CheckpointError, match=r"^checkpoint is not found$"):
        store.load()
    store.save(Checkpoint())
    first = store.path.stat().st_ino
    store.save(ONE)
    assert store.load() == ONE
    assert store.path.read_text() == to_text(ONE)
    assert [p.name for p in tmp_path.iterdir()] == ["kubelet_internal_checkpoint"]
    assert oct(store.path.stat().st_mode & 0o777) == "0o600"
    assert store.path.stat().st_ino != first
    store.path.write_bytes(b"\xff\xfe")
    with pytest.raises(CheckpointError):
        store.load()


def test_memory_forgets_when_spoilt_until_it_is_saved_again():
    store = MemoryCheckpoint()
    store.save(ONE)
    assert store.load() == ONE
    store.spoil("checkpoint is corrupted")
    with pytest.raises(CheckpointError, match=r"^checkpoint is corrupted$"):
        store.load()
    store.save(ONE)
    assert store.load() == ONE
