"""Bounds follow from the configuration: they grow with what hardware and systems take, and with nothing else."""

import pytest

from mews.harness.invariants.reactions import computed_bounds, hardware_times
from mews.harness.scenario.facility import facility_of
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.loader import parse_scenario, shipped


def bounds(stack="{}", profile="instant", speed=1.0):
    text = (
        "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: bounds}\n"
        f"hardware: {{file: demo, profile: {profile}}}\nstack: {stack}\n"
    )
    scenario = parse_scenario(text, shipped("hardware", "demo").parent / "bounds.yaml")
    hardware = hardware_of(scenario)
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
    ],
)
def test_a_more_patient_system_has_the_time_that_it_asks_for(option, bound):
    usual, _ = bounds()
    patient, _ = bounds(f"{{kubecomp: {{config: {{timing: {{{option}}}}}}}}}")
    assert patient[bound] > usual[bound]
    assert {name: patient[name] for name in usual if name != bound} == {n: usual[n] for n in usual if n != bound}


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
