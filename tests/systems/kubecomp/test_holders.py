from __future__ import annotations

from mews.kube.deviceplugin.port import ContainerDevices, PodDevices
from mews.systems.kubecomp.holders import GpuHolders, granted, grants_aged, listed, unknown

GPU = "falcon.com/gpu"


def pod(name: str, *gpuids: str, resource: str = GPU) -> PodDevices:
    return PodDevices(name, "default", (("main", tuple(ContainerDevices(resource, (g,)) for g in gpuids)),))


def read(holders: GpuHolders, *pods: PodDevices, at_s: float = 0.0) -> GpuHolders:
    return listed(holders, pods, GPU, now_s=at_s, empty_settle_s=2.0)


def test_holders_are_the_pods_of_the_list_with_that_resource() -> None:
    found = read(GpuHolders(), pod("a", "0-1", "0-2"), pod("b"), pod("c", "x", resource="other.com/x"))
    assert found.held == {"0-1": "default/a", "0-2": "default/a"}
    assert not found.uses("0-3")


def test_before_the_first_list_everything_is_in_use() -> None:
    assert GpuHolders().uses("0-1")


def test_an_empty_list_proves_nothing_until_it_stays_so() -> None:
    first = read(read(GpuHolders(), pod("a", "0-1")), at_s=10.0)
    again = read(first, at_s=11.9)
    for found in (first, again):
        assert found.uses("0-1")
        assert found.uses("0-2")
    assert not read(again, at_s=12.0).uses("0-1")
    assert read(read(again, pod("a", "0-1"), at_s=11.95), at_s=12.0).uses("0-2"), "it begins anew"


def test_after_a_failed_list_the_last_word_stands_and_counts_as_in_use() -> None:
    lost = unknown(read(GpuHolders(), pod("a", "0-1")))
    assert lost.held == {"0-1": "default/a"}
    assert lost.uses("0-2")


def test_what_allocate_handed_out_is_in_use_until_a_list_shows_or_time_disproves_it() -> None:
    given = granted(read(GpuHolders(), pod("a")), ["0-1"], 10.0)
    assert given.uses("0-1")
    assert read(given, pod("a")).uses("0-1")
    assert read(given, pod("a", "0-1")).grants == {}
    assert grants_aged(given, 39.0, 30.0).uses("0-1")
    assert not grants_aged(given, 40.0, 30.0).uses("0-1")
