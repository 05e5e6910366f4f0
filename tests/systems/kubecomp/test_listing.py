from __future__ import annotations

from mews.kube.chassis.port import DeviceRecord, Listing
from mews.systems.kubecomp.listing import KnownChassis, judge


def record(device: str, port: str | None = "1", kind: str = "GPU") -> DeviceRecord:
    return DeviceRecord(device, f"GPU-{device}", port, kind)


def read(belief: KnownChassis, *records: DeviceRecord) -> KnownChassis:
    return judge(belief, Listing(records), kind="GPU", vanish_reads=3)


FOUR = read(KnownChassis(), *map(record, "abcd"))


def test_a_full_listing_is_believed() -> None:
    moved = read(FOUR, record("a", None), *map(record, "bcd"))
    assert moved.is_full
    assert moved.devices["a"].port is None


def test_nothing_is_known_before_the_first_reading() -> None:
    assert not KnownChassis().is_full
    assert FOUR.is_full


def test_a_partial_listing_takes_nothing_away_but_what_it_shows_is_believed() -> None:
    partial = read(FOUR, record("a", "2"), record("b"))
    assert sorted(partial.devices) == ["a", "b", "c", "d"]
    assert partial.devices["a"].port == "2"
    assert not partial.is_full


def test_a_device_is_gone_once_the_same_ones_lack_three_times_in_a_row() -> None:
    belief = FOUR
    for _ in range(2):
        belief = read(belief, *map(record, "abc"))
        assert "d" in belief.devices
    assert sorted(read(belief, *map(record, "abc")).devices) == ["a", "b", "c"]


def test_readings_that_lack_different_devices_prove_nothing() -> None:
    belief = FOUR
    for lacking in "dcdcdc":
        belief = read(belief, *(record(device) for device in "abcd" if device != lacking))
    assert sorted(belief.devices) == ["a", "b", "c", "d"]


def test_an_empty_listing_never_empties_the_belief() -> None:
    belief = FOUR
    for _ in range(10):
        belief = read(belief)
    assert sorted(belief.devices) == ["a", "b", "c", "d"]
    assert read(belief, *map(record, "abcd")).is_full


def test_only_devices_of_the_pooled_kind_count() -> None:
    mixed = judge(KnownChassis(), Listing((record("a"), record("n", kind="NIC"))), kind="NIC", vanish_reads=3)
    assert sorted(mixed.devices) == ["n"]
