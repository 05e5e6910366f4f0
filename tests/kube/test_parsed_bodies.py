"""Bodies are parsed once, by their bytes."""

import json

import pytest

from mews.kube.chassis.parsed import ParsedBodies


def test_the_same_bytes_are_parsed_once_and_others_anew():
    seen = []

    def parse(body):
        seen.append(body)
        return json.loads(body)

    bodies = ParsedBodies(parse)
    first = bodies(b'["a"]')
    assert bodies(bytes(bytearray(b'["a"]'))) is first
    assert bodies(b'["b"]') == ["b"]
    assert seen == [b'["a"]', b'["b"]']


def test_what_cannot_be_parsed_is_an_error_each_time():
    bodies = ParsedBodies(json.loads)
    for _ in range(2):
        with pytest.raises(ValueError, match="Expecting value"):
            bodies(b"nonsense")


def test_the_oldest_go_first_where_there_are_too_many():
    seen = []
    bodies = ParsedBodies(seen.append, limit_bytes=8)
    for body in (b"aaaa", b"bbbb", b"cccc", b"bbbb", b"aaaa"):
        bodies(body)
    assert seen == [b"aaaa", b"bbbb", b"cccc", b"aaaa"]
