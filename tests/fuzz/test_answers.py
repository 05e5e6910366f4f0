"""The fuzzer's own reader of answers: a judge that reads wrongly finds nothing."""

import pytest

from tests.fuzz.answers import NO_HTTP, AnswerReader

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def read(data, method="GET", *, step):
    reader, fed = AnswerReader(method), 0
    while fed < len(data) and not reader.whole:
        reader.feed(data[fed : fed + step])
        fed += step
    return reader


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize(
    ("data", "method", "body", "closes"),
    [
        (HEAD + b"Content-Length: 3\r\n\r\nabc", "GET", b"abc", False),
        (HEAD + b"Content-Length: 0\r\n\r\n", "GET", b"", False),
        (HEAD + b"Content-Length: 3\r\n\r\n", "HEAD", b"", False),
        (HEAD + b"content-length: 1\r\nConnection: close\r\n\r\na", "GET", b"a", True),
        (CHUNKED + b"2;x\r\nab\r\n1\r\nc\r\n0\r\nTrailer: x\r\n\r\n", "GET", b"abc", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 1\r\n\r\na", "GET", b"a", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", "GET", b"a", True),
    ],
)  # fmt: skip
def test_an_answer_is_whole_where_its_framing_ends(data, method, body, closes, step):
    reader = read(data, method, step=step)
    assert (reader.status, reader.whole, reader.closes) == ("200", True, closes)
    assert reader.body.replace(b"\r\n", b"") == body.replace(b"\r\n", b"")


def test_an_answer_without_its_end_is_not_whole_until_the_connection_ends():
    reader = read(HEAD + b"\r\nabc", step=5)
    assert (reader.status, reader.whole) == ("200", False)
    reader.end()
    assert reader.whole and reader.closes


@pytest.mark.parametrize("data", [b"SSH-2.0\r\n", b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_what_is_no_answer_is_told(data):
    assert read(data, step=3).status == NO_HTTP
