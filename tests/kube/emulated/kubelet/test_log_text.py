"""What of a log is shown: lines from the end, from a time on, with their times, up to so many bytes."""

from __future__ import annotations

import pytest

from mews.kube.emulated.kubelet.log_text import LogSelection, LogText, pieces, tail_start
from mews.kube.emulated.kubelet.runtime import LogMark

LOG = b"one\ntwo\nthree\nfour"
MARKS = (LogMark(0, 10.0), LogMark(6, 20.0), LogMark(8, 30.0))  # "two" was begun at 10 and ended at 20


def shown(text: bytes = LOG, marks: tuple[LogMark, ...] = MARKS, **options: object) -> bytes:
    selection = LogSelection(**options)  # type: ignore[arg-type]
    start, log = tail_start(text, selection.tail_lines), LogText(selection)
    return b"".join(log.show(piece, mark.loop_s) for piece, mark in pieces(text[start:], start, marks))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, LOG),
        ({"tail_lines": 0}, b""),
        ({"tail_lines": 1}, b"four"),
        ({"tail_lines": 2}, b"three\nfour"),
        ({"tail_lines": 9}, LOG),
        ({"limit_bytes": 5}, b"one\nt"),
        ({"since": 10.0}, LOG),
        ({"since": 10.5}, b"three\nfour"),
        ({"since": 31.0}, b""),
        ({"since": 15.0, "limit_bytes": 3}, b"thr"),
    ],
)
def test_a_log_is_cut_as_asked(options: dict[str, object], expected: bytes) -> None:
    assert shown(**options) == expected


def test_each_line_stands_after_the_time_at_which_it_began() -> None:
    assert shown(timestamps=True, tail_lines=3) == (
        b"1970-01-01T00:00:10.000000000Z two\n1970-01-01T00:00:30.000000000Z three\n1970-01-01T00:00:30.000000000Z four"
    )


def test_a_line_that_ends_counts_no_empty_one_after_it() -> None:
    assert LOG[tail_start(LOG + b"\n", 1) :] == b"four"
    assert tail_start(b"\n\n", 1) == 1
    assert shown(b"a\n\nb\n", (LogMark(0, 0.0),), timestamps=True).count(b"1970") == 3
