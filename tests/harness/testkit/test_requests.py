"""The requests of a client under test, and how assertions about them fail."""

import pytest

from mews.harness.testkit.requests import SentRequests

ROW = {"number": 1, "t": 0.5, "took_s": 0.1, "chassis": "A", "dialect": "h3api", "method": "GET", "path": "/x/1"}
ROWS = [
    {**ROW, "status": 200, "agent": "mine/1"},
    {**ROW, "number": 2, "method": "POST", "body": '{"gid": "0h", "port": {"n": 1, "m": 2}}', "status": 409},
    {**ROW, "number": 3, "query": {"deep": "1"}, "status": None},
]


@pytest.fixture
def sent():
    return SentRequests(lambda since: [row for row in ROWS if row["number"] > since])


@pytest.mark.parametrize(
    ("method", "path", "wanted", "numbers"),
    [
        (None, None, {}, [1, 2, 3]),
        ("get", "/x/*", {}, [1, 3]),
        ("GET", "/y", {}, []),
        (None, None, {"status": 409}, [2]),
        (None, None, {"status": None}, [3]),
        (None, None, {"body": {"port": {"n": 1}}}, [2]),
        (None, None, {"body": {"port": {"n": 2}}}, []),
        (None, None, {"body": ""}, [1, 3]),
        (None, None, {"query": {"deep": 1}}, [3]),
        (None, None, {"agent": "mine/*", "dialect": "h3api", "chassis": "A"}, [1]),
    ],
)
def test_requests_match_by_what_is_wanted_of_them(sent, method, path, wanted, numbers):
    assert [each.number for each in sent.matching(method, path, **wanted)] == numbers


def test_the_first_that_is_so_is_returned_and_read(sent):
    assert sent.assert_requested("POST", "/x/*", times=1).json() == {"gid": "0h", "port": {"n": 1, "m": 2}}
    sent.assert_not_requested("DELETE")
    assert len(sent) == 3
    assert sent[0].status == 200


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"method": "POST", "body": {"port": {"n": 7}}},
            ["with body", "it came 0 times", "Nearest is 2: body.port.n is 1"],
        ),
        ({"method": "GET", "times": 1}, ["request GET 1 times; it came 2 times", "  1  0.500 s  GET /x/1  -> 200"]),
        ({"path": "/z"}, ["-> dropped", "/x/1?deep=1"]),
    ],
)
def test_a_failure_shows_what_came_instead_and_what_of_the_nearest_differs(sent, asked, words):
    with pytest.raises(AssertionError) as failed:
        sent.assert_requested(**asked)
    assert [word for word in words if word not in str(failed.value)] == []


def test_what_must_not_come_is_listed(sent):
    with pytest.raises(AssertionError, match="expected no request POST; it came 1 times:\n   2  "):
        sent.assert_not_requested("POST")


def test_no_request_at_all_is_a_hint():
    with pytest.raises(AssertionError, match="sent no request at all: does the client use its URL"):
        SentRequests(lambda since: []).assert_requested("GET")


def test_a_word_that_is_none_is_refused(sent):
    with pytest.raises(TypeError, match="stats: must be one of method, path, body"):
        sent.assert_requested("GET", stats=200)


def test_what_was_cleared_is_gone(sent):
    sent.clear()
    assert list(sent) == []
