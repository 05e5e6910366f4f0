"""What a client sent becomes a value that nothing fails over later, or a ValueError of one line."""

import json

import pytest

from mews.listening.reading import bears, read_json, read_like_go, readable, redacted, whole_number

BIG = b"1" + b"0" * 400
DEEP = b"[" * 101 + b"]" * 101


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b'"\\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b"NaN", b"1e400", BIG, DEEP, b"[" * 10**6],
)
def test_what_is_no_value_is_refused_in_one_line(raw):
    with pytest.raises(ValueError) as refused:
        read_json(raw)
    assert "\n" not in str(refused.value)


def test_a_value_is_read_as_it_is():
    assert read_json(b'{"a": [1, -9223372036854775808, 1.5, "\\ud83d\\ude00", null]}') == {
        "a": [1, -(1 << 63), 1.5, "\U0001f600", None]
    }


@pytest.mark.parametrize("raw", [b"", b"{", b"NaN", b"-Infinity", b"1e400", b"1" + b"0" * 400, DEEP, b"[" * 10**6])
def test_go_refuses(raw):
    with pytest.raises(ValueError):
        read_like_go(raw)


@pytest.mark.parametrize(
    ("raw", "value"),
    [(b'"\\ud800"', "\ufffd"), (b'"a\xffb"', "a\ufffdb"),
     (b'{"\\udfff": ["\\ud83d\\ude00"]}', {"\ufffd": ["\U0001f600"]}),
     (b"18446744073709551616", 1 << 64), (b"null", None)],
)  # fmt: skip
def test_go_reads(raw, value):
    assert read_like_go(raw) == value
    json.dumps(value).encode()


def test_a_token_is_compared_as_bytes():
    assert bears({"authorization": "Bearer secret"}, "secret")
    for given in ("", "Bearer", "Bearer secreT", "secret", "Bearer \udcff", "Bearer \xe9"):
        assert not bears({"authorization": given}, "secret")
    assert not bears({"authorization": "Bearer "}, "")


@pytest.mark.parametrize(
    "text",
    ["GET /x?token=hush", "Authorization: Bearer hush", '{"Password": "hush"}', "X-Auth-Token: hush", "Basic hush"],
)
def test_secrets_are_left_out_of_logs(text):
    assert "hush" not in redacted(text)


def test_texts_can_always_be_encoded():
    assert readable("a\udcffb") == "a\\udcffb"


@pytest.mark.parametrize("text", ["", "x", "-1", "+1", "1.5", "\u00b2", "\u0661", "9" * 5000, "9223372036854775808"])
def test_a_number_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="since="):
        whole_number(text, "since")
    assert whole_number("9223372036854775807", "since") == (1 << 63) - 1
