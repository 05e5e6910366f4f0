"""Which addresses a pod's sockets get."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mews.kube.emulated.kubelet.podnet.addresses import NoEndpointError, PodAddress, bound, connected, mapped, plain
from mews.kube.emulated.kubelet.podnet.service_table import read_services

POD = PodAddress("127.77.2.3")
TABLE = """\
10.96.0.1 443 TCP api
10.96.0.7 80 TCP
10.96.0.7 80 TCP 127.77.1.2 8080
10.96.0.7 80 TCP 127.77.2.2 8081
10.96.0.9 53 UDP
"""
SERVICES = read_services(TABLE, ("127.0.0.1", 6443))


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("0.0.0.0", "127.77.2.3"),
        ("::", "127.77.2.3"),
        ("127.0.0.1", "127.78.2.3"),
        ("::1", "127.78.2.3"),
        ("127.77.2.3", None),
        ("192.0.2.1", None),
    ],
)
def test_a_pod_listens_at_its_own_addresses(asked: str, given: str | None) -> None:
    assert bound(POD, asked) == given


def to(ip: str, port: int, *there: tuple[str, int], kind: str = "TCP") -> tuple[str, int] | None:
    def last(endpoints: Sequence[tuple[str, int]]) -> tuple[str, int]:
        return endpoints[-1]

    return connected(POD, ip, port, kind, listens=lambda *at: at in there, services=SERVICES, pick=last)


@pytest.mark.parametrize("ip", ["127.0.0.1", "::1", "0.0.0.0", "::"])
def test_localhost_is_the_pods_where_it_listens_and_this_machines_where_not(ip: str) -> None:
    assert to(ip, 80, ("127.78.2.3", 80), ("127.77.2.3", 80)) == ("127.78.2.3", 80)
    assert to(ip, 80, ("127.77.2.3", 80)) == ("127.77.2.3", 80)
    assert to(ip, 80, ("127.78.2.4", 80), ("127.77.2.3", 81)) is None


def test_services_lead_to_their_endpoints() -> None:
    assert to("10.96.0.7", 80) == ("127.77.2.2", 8081)
    assert to("10.96.0.1", 443) == ("127.0.0.1", 6443)
    assert to("10.96.0.7", 81) is None
    assert to("10.96.0.7", 80, kind="UDP") is None
    with pytest.raises(NoEndpointError):
        to("10.96.0.9", 53, kind="UDP")


def test_other_addresses_are_left_alone() -> None:
    assert to("127.77.1.2", 80, ("127.78.2.3", 80)) is None
    assert to("192.0.2.1", 80) is None


def test_addresses_in_the_other_form() -> None:
    assert plain("::ffff:127.0.0.1") == "127.0.0.1"
    assert plain("::1") == "::1"
    assert mapped("127.77.2.3") == "::ffff:127.77.2.3"
    assert mapped("::1") == "::1"
