"""Whose requests a server answers: Host, Origin and Sec-Fetch-Site."""

import pytest

from mews.callers import callers, name_of

LOCAL = callers("127.0.0.1", ["chassis.kubecomp.svc"])
ABROAD = callers("0.0.0.0")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "LOCALHOST", "[::1]:80", "a.localhost", "chassis.kubecomp.svc:8080",
     "127.9.8.7:1", "localhost.:80"],
)  # fmt: skip
def test_our_own_names_are_answered(host):
    assert LOCAL.refusal({"host": host}) is None


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "[::2]", "", "a b", "127.0.0.1:x",
     "user@localhost", "localhost/x", "[::1", "169.254.169.254"],
)  # fmt: skip
def test_foreign_hosts_are_refused(host):
    assert "--allow-host" in LOCAL.refusal({"host": host})


def test_a_request_without_a_host_is_no_browsers():
    assert LOCAL.refusal({}) is None


def test_a_server_that_listens_beyond_loopback_goes_by_any_address_but_by_no_name():
    assert ABROAD.refusal({"host": "10.1.2.3:80"}) is None
    assert ABROAD.refusal({"host": "evil.example"}) is not None


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "Cross-Site"])
def test_requests_of_other_sites_pages_are_refused(site):
    assert "Sec-Fetch-Site" in LOCAL.refusal({"host": "127.0.0.1", "sec-fetch-site": site})


@pytest.mark.parametrize("site", ["same-origin", "none", "Same-Origin"])
def test_our_own_pages_and_typed_addresses_are_answered(site):
    assert LOCAL.refusal({"host": "127.0.0.1", "sec-fetch-site": site}) is None


@pytest.mark.parametrize(
    ("origin", "host", "secure"),
    [("http://127.0.0.1:8000", "127.0.0.1:8000", False), ("https://localhost", "localhost:443", True),
     ("ws://localhost:9", "localhost:9", False), ("http://localhost:80", "localhost", False)],
)  # fmt: skip
def test_our_own_origin_is_answered(origin, host, secure):
    assert LOCAL.refusal({"host": host, "origin": origin}, secure=secure) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "http://127.0.0.1:8001",
        "https://127.0.0.1:8000",
        "file://",
        "",
        "http://127.0.0.1",
    ],
)
def test_other_origins_are_refused(origin):
    assert "Origin" in LOCAL.refusal({"host": "127.0.0.1:8000", "origin": origin})


def test_a_host_is_read_without_port_and_brackets():
    assert [name_of(host) for host in ("A.b:1", "[::1]:2", "a:b:c", "x/y")] == ["a.b", "::1", None, None]
