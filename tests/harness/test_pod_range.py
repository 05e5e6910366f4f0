"""Clusters of one machine share no addresses of pods."""

from __future__ import annotations

from mews.harness.clusters.embedded.pod_range import PodRange


def test_two_clusters_share_neither_pod_addresses_nor_their_loopback() -> None:
    first, second = PodRange(), PodRange()
    try:
        octets = [int(each.prefix.split(".")[1]) for each in (first, second)]
        assert abs(octets[0] - octets[1]) >= 2
    finally:
        first.release()
        second.release()


def test_a_released_range_is_given_again() -> None:
    first = PodRange()
    first.release()
    second = PodRange()
    second.release()
    assert second.prefix == first.prefix
