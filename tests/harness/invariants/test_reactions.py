"""Bounds follow from the configuration: they grow with what hardware and systems take, and with nothing else."""

import pytest
import yaml
from msgspec.structs import replace

from mews.emulator.hardware.host_profiles import parse_host_profile
from mews.harness.catalogue.files import shipped
from mews.harness.invariants.reactions import computed_bounds, hardware_times
from mews.harness.scenario.facility import facility_of
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.loader import parse_scenario


def bounds(stack="{}", profile="instant", speed=1.0, host="{}"):
    text = (
        "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: bounds}\n"
        f"hardware: {{file: demo, profile: {profile}}}\nstack: {stack}\n"
    )
    scenario = parse_scenario(text, shipped("hardware", "demo").parent / "bounds.yaml")
    hardware = hardware_of(scenario)
    host_profile = parse_host_profile(yaml.safe_load(host))
    if host != "{}":
        hardware = replace(hardware, hosts=tuple(replace(each, profile=host_profile) for each in hardware.hosts))
    systems = scenario.stack.configured(facility_of(hardware, dialect="h3api", speed=speed))
    return dict(computed_bounds(systems, hardware, speed)), hardware_times(hardware, speed)


@pytest.mark.parametrize(
    ("option", "bound"),
    [
        ("device_poll_s: 5", "allocatable_s"),
        ("vanish_reads: 20", "allocatable_s"),
        ("requeue_last_s: 600", "unattached_s"),
        ("read_back_bound_s: 90", "unattached_s"),
        ("withdrawal_timeout_s: 200", "unattached_s"),
        ("removal_timeout_s: 30", "unattached_s"),
    ],
)
def test_a_more_patient_system_has_the_time_that_it_asks_for(option, bound):
    usual, _ = bounds()
    patient, _ = bounds(f"{{kubecomp: {{config: {{timing: {{{option}}}}}}}}}")
    assert patient[bound] > usual[bound]
    assert {name: patient[name] for name in usual if name != bound} == {n: usual[n] for n in usual if n != bound}


def test_a_pool_waits_for_pods_that_whoever_shares_a_gpu_sends_away_first():
    refuses, _ = bounds("{gpushare: {}}")
    evicts, _ = bounds("{gpushare: {onShared: evict}}")
    patient, _ = bounds("{gpushare: {onShared: evict, evict_s: 200}}")
    assert evicts["unattached_s"] - refuses["unattached_s"] == pytest.approx(90.0)
    assert patient["unattached_s"] - evicts["unattached_s"] == pytest.approx(110.0)
    assert refuses["allocatable_s"] == evicts["allocatable_s"] == patient["allocatable_s"]


def test_slow_hardware_has_the_longest_of_its_profile():
    usual, _ = bounds()
    slow, times = bounds(profile="falcon-4005")
    assert (times.read_s, times.attach_s, times.detach_s) == (8.8, 18.2, 13.4)
    assert all(slow[name] > usual[name] for name in usual)


def test_emulated_latencies_shrink_with_the_speed_and_the_systems_periods_do_not():
    real, _ = bounds(profile="falcon-4005")
    fast, times = bounds(profile="falcon-4005", speed=10.0)
    instant, _ = bounds()
    assert times.read_s == pytest.approx(0.88)
    assert all(instant[name] < fast[name] < real[name] for name in real)


def test_where_nothing_is_pooled_nothing_is_computed():
    assert bounds("{kubecomp: null}")[0] == {}


@pytest.mark.parametrize(
    ("link", "wait_s"), [("0", 0.0), ("0.3", 3.0), ("{uniform: [1, 2]}", 3.0), ("2.1", 8.0), ("7", 17.0)]
)
def test_a_host_that_does_not_notice_a_device_has_the_time_until_the_rescan_that_finds_it(link, wait_s):
    notices, _ = bounds(host=f"{{link: {link}, pciehp: true}}")
    rescans, _ = bounds(host=f"{{link: {link}, pciehp: false}}")
    assert rescans["allocatable_s"] - notices["allocatable_s"] == pytest.approx(wait_s)
    assert rescans["unattached_s"] == notices["unattached_s"]


def test_devices_that_go_by_surprise_are_waited_for_no_longer_than_one():
    orderly, _ = bounds()
    surprise, times = bounds("{kubecomp: {removal: surprise}}")
    assert times.devices == 12
    assert orderly["unattached_s"] - surprise["unattached_s"] == 11 * 10.0


def test_a_kubelet_that_was_away_has_the_time_to_start_before_its_next_status():
    polled, _ = bounds()
    assert polled["allocatable_s"] == pytest.approx(6 * 1.0 + 0.2 + 0.66 + 0.2 + 10.4)
