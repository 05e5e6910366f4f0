"""Bodies that would exhaust the API server's stack or memory are bad requests."""

import pytest

from mews.kube.api.errors import BadRequestError
from mews.kube.emulated.core.wire.negotiation import parse_json, parse_yaml


@pytest.mark.parametrize("raw", [b"[" * 100_000, b"a: &x [*x]", b"- " * 5000, b"\xffa", b"a: \x00", b"{"])
def test_no_yaml_ends_the_server(raw):
    with pytest.raises(BadRequestError, match="error converting YAML to JSON"):
        parse_yaml(raw)


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"1" * 5000, b"{"])
def test_no_json_ends_the_server(raw):
    with pytest.raises(BadRequestError, match="json parse error"):
        parse_json(raw)
