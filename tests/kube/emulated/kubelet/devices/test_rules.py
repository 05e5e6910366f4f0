"""The pure rules: names, order, choice, merging."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mews.kube.api.extended_resources import is_extended_resource
from mews.kube.deviceplugin.port import Allocation, DeviceNode, Mount
from mews.kube.emulated.kubelet.devices.choice import Need, begin, complete
from mews.kube.emulated.kubelet.devices.errors import DeviceAllocationError
from mews.kube.emulated.kubelet.devices.merge import merged
from mews.kube.emulated.kubelet.devices.order import shuffled

TOO_FEW = "requested number of devices unavailable for example.com/r."
IDS = st.lists(st.sampled_from([f"d{i}" for i in range(10)]), unique=True).map(tuple)


def need(required, held=None, reusable=(), healthy=("a", "b", "c"), allocated=()):
    return Need("uid", "main", "example.com/r", required, held, reusable, healthy, allocated)


@pytest.mark.parametrize(
    "name", ["a.b/c", "falcon.com/gpu", "example.com/GPU", "a/b", "a.b/" + "g" * 63, "a.b/x_y.z-1"]
)
def test_a_name_with_a_domain_of_its_own_is_an_extended_resource(name):
    assert is_extended_resource(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "gpu", "/gpu", "a.b/", "a.b/c/d", "Example.com/g", "kubernetes.io/g", "x.kubernetes.io/g"),
        *("requests.a.b/g", "a.b/" + "g" * 64, "a.b/-g", "a..b/g", "a.b/g\n", "d" * 250 + "/g"),
    ],
)
def test_any_other_name_is_not(name):
    assert not is_extended_resource(name)


@given(st.lists(st.integers(), unique=True), st.integers())
def test_go_order_is_a_rotation(items, seed):
    order = shuffled(items, random.Random(seed))
    assert sorted(order) == sorted(items)
    if items:
        at = order.index(items[0])
        assert order[at:] + order[:at] == items


@given(required=st.integers(0, 6), reusable=IDS, healthy=IDS, allocated=IDS, preferred=IDS, seed=st.integers())
def test_a_choice_has_what_is_needed_reused_first_then_free_healthy_ones(
    required, reusable, healthy, allocated, preferred, seed
):
    rng = random.Random(seed)
    asked = need(required, None, reusable, healthy, allocated)
    try:
        choice = begin(asked, rng)
    except DeviceAllocationError:
        free = set(healthy) - set(allocated) - set(reusable)
        assert not healthy or len(free) < required - len(reusable)
        return
    if choice is None:
        assert required == 0
        return
    if choice.missing:
        assert set(choice.chosen) == set(reusable)
        free = choice.free
        choice = complete(choice, preferred, rng)
        wanted = [device for device in preferred if device in free]
        taken = set(choice.chosen) - set(reusable)
        assert set(wanted) <= taken or taken <= set(wanted)
        assert taken <= set(healthy) - set(allocated)
    else:
        assert set(choice.chosen) <= set(reusable)
    assert choice.missing == 0
    assert len(set(choice.chosen)) == required


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            need(2, allocated=("a", "b")),
            f"{TOO_FEW} Requested: 2, Available: 1",
        ),
        (need(9), f"{TOO_FEW} Requested: 9, Available: 3"),
        (
            need(5, reusable=("a",)),
            f"{TOO_FEW} Requested: 4, Available: 2",
        ),
        (need(1, healthy=()), "no healthy devices present; cannot allocate unhealthy devices example.com/r"),
        (need(1, healthy=None), "cannot allocate unregistered device example.com/r"),
        (
            need(1, held=("z",)),
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices example.com/r",
        ),
        (need(2, held=("a",)), 'pod "uid" container "main" changed request for resource "example.com/r" from 1 to 2'),
    ],
)
def test_what_cannot_be_given_is_told_in_the_kubelets_words(asked, words):
    with pytest.raises(DeviceAllocationError) as failed:
        begin(asked, random.Random(0))
    assert str(failed.value) == words


def test_a_container_that_holds_its_devices_needs_nothing():
    assert begin(need(1, held=("a",)), random.Random(0)) is None


def test_of_two_resources_that_set_one_name_the_first_counts():
    one = Allocation({"A": "1", "BOTH": "one"}, (Mount("/m", "/1"),), (DeviceNode("/d", "/1"),), {"k": "1"}, ("x", "y"))
    two = Allocation({"BOTH": "two", "B": "2"}, (Mount("/m", "/2"),), (DeviceNode("/e", "/2"),), {"k": "2"}, ("y", "z"))
    assert merged([one, two]) == Allocation(
        {"A": "1", "BOTH": "one", "B": "2"},
        (Mount("/m", "/1"),),
        (DeviceNode("/d", "/1"), DeviceNode("/e", "/2")),
        {"k": "1"},
        ("x", "y", "z"),
    )
    assert merged([]) == Allocation()
