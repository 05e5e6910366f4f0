"""/metrics: to whom it is shown, by which name, and that a mute client keeps nobody waiting."""

import argparse
import socket
import ssl
import time
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from mews.certificates import make_certificates
from mews.kube.metrics_options import MetricsOptions, add_metrics_arguments, metrics_options

pytestmark = pytest.mark.wall


@pytest.fixture
def served():
    from prometheus_client import CollectorRegistry, Counter

    from mews.kube.metrics_server import MetricsServer

    registry = CollectorRegistry()
    Counter("moves", "GPUs that moved.", registry=registry).inc(3)
    running = []

    def start(**options):
        running.append(MetricsServer(registry, MetricsOptions(0, **options)))
        return running[-1].port

    yield start
    for server in running:
        server.stop()


def read(url, context=None, **headers):
    try:
        with urlopen(Request(url, headers=headers), timeout=30, context=context) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:9090"}, 200),
        ({"Host": "rebound.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://rebound.example"}, 403),
        ({"Host": "metrics.pool.svc:9090"}, 200),
    ],
)
def test_web_pages_and_foreign_names_are_refused(served, headers, status):
    port = served(allow_hosts=("metrics.pool.svc",))
    got, text = read(f"http://127.0.0.1:{port}/metrics", **headers)
    assert got == status
    assert ("moves_total 3.0" in text) == (status == 200)


def test_with_a_certificate_and_a_token_only_who_has_both_reads(served, tmp_path):
    made = make_certificates(tmp_path, time.time())
    port = served(certificate=made.certificate, key=made.key, token="t0ken")
    url, trusted = f"https://127.0.0.1:{port}/metrics", made.client_context()
    assert read(url, trusted, Authorization="Bearer t0ken")[0] == 200
    assert read(url, trusted, Authorization="Bearer other")[0] == 401
    assert read(url, trusted)[0] == 401
    with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
        read(url, ssl.create_default_context(), Authorization="Bearer t0ken")


def test_a_client_that_says_nothing_keeps_nobody_waiting(served, tmp_path):
    made = make_certificates(tmp_path, time.time())
    port = served(certificate=made.certificate, key=made.key)
    with socket.create_connection(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)):
        began = time.monotonic()
        assert read(f"https://127.0.0.1:{port}/metrics", made.client_context())[0] == 200
        assert time.monotonic() - began < 8, "the mute are given up after 10 s"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--metrics-token-file", "t"], "only with --metrics-port"),
        (["--metrics-port", "9090", "--metrics-key", "k"], "must be given together"),
        (["--metrics-port", "9090", "--metrics-token-file", "/nowhere/t"], "/nowhere/t: cannot be read"),
        (["--metrics-port", "9090", "--metrics-token-file", "/dev/null"], "is empty"),
    ],
)
def test_what_does_not_go_together_is_refused(words, reason):
    parser = argparse.ArgumentParser()
    add_metrics_arguments(parser)
    with pytest.raises(ValueError, match=reason):
        metrics_options(parser.parse_args(words))
