"""The client's connections: one for each request, one for long walks, and answers that are lost on purpose."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from mews.harness.conformance.at_once import at_once
from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.client import ChassisTarget, Client, HttpReply
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.errors import ListingUnavailableError, NoAnswerError, OutOfTimeError
from tests.harness.conformance.judging import BRISK, judged
from tests.harness.conformance.wire import box_handler, running
from tests.harness.conformance.wrong import LocalClient, Wrong

pytestmark = pytest.mark.wall


class Counting(BaseHTTPRequestHandler):
    """Answers with the number of its connection; ``/last`` is the last of one, ``/none`` is not answered at all."""

    protocol_version = "HTTP/1.1"
    opened: list[int]

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""

    def setup(self) -> None:
        super().setup()
        self.opened.append(len(self.opened))
        self.mine = len(self.opened)

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/none":
            self.close_connection = True
            return
        text = str(self.mine).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = self.path == "/last"

    do_POST = do_GET


@contextmanager
def counting() -> Iterator[Client]:
    with running(type("OneCounting", (Counting,), {"opened": []})) as port:
        yield Client(ChassisTarget(f"http://127.0.0.1:{port}", patience_s=5.0))


def test_each_request_has_a_connection_of_its_own_and_a_walk_one_for_its_reads():
    with counting() as client:
        assert [client.send("GET", "/").text for _ in range(2)] == ["1", "2"]
        with client.one_connection():
            assert [client.send("GET", "/").text for _ in range(3)] == ["3", "3", "3"]
            assert client.send("POST", "/", b"x").text == "4"
            assert client.send("GET", "/").text == "3"
        assert client.send("GET", "/").text == "5"


def test_a_read_over_a_connection_that_is_closed_is_made_again_over_a_new_one_and_noted_once():
    with counting() as client, client.one_connection():
        assert [client.send("GET", path).text for path in ("/", "/last", "/", "/")] == ["1", "1", "2", "2"]
        assert [exchange.error for exchange in client.log] == [""] * 4


def test_a_read_that_no_connection_answers_is_not_answered():
    with counting() as client, client.one_connection():
        client.send("GET", "/")
        with pytest.raises(NoAnswerError, match="GET /none: no answer: RemoteDisconnected") as told:
            client.send("GET", "/none")
        assert told.value.kind == "dropped"
        assert client.send("GET", "/").text == "3"


def test_a_lost_answer_is_that_of_a_write_which_arrives():
    box = Wrong()
    with running(box_handler(box)) as port:
        client = Client(ChassisTarget(f"http://127.0.0.1:{port}", patience_s=5.0))
        face = clauses_of("h3api").face(client)
        face.read()
        with client.answers_lost():
            with pytest.raises(NoAnswerError, match="the answer was not read, on purpose") as told:
                face.attach("000100", "2")
            assert face.read().rows
        bench = ClauseContext(client, face, limits=BRISK)
        assert bench.seen_on_some_port("000100").port("000100") == "2"
        assert told.value.kind == NoAnswerError.LOST
        assert face.detach("000100")


class Undo:
    """Counts writes that are begun and not answered."""

    open = 0

    def begin(self, device: str, port: str | None) -> None:
        self.open += 1

    def answered(self) -> None:
        self.open -= 1

    def saw(self, device: str, port: str | None) -> None:
        """Nothing is undone here."""

    knocked_off = begin


def test_an_attach_that_was_not_heard_and_is_seen_is_nothing_that_may_still_take_effect():
    with running(box_handler(Wrong())) as port:
        client = Client(ChassisTarget(f"http://127.0.0.1:{port}", patience_s=5.0))
        undo = Undo()
        bench = ClauseContext(client, clauses_of("h3api").face(client), limits=BRISK)
        bench.allow(("000100",), ("1",), undo)
        assert bench.move_unanswered("000100", "1").port("000100") == "1"
        assert undo.open == 0
        assert not bench.ledger.of("answers")


def retried(box: Wrong, word: str = "2.retry") -> tuple[str, str]:
    with running(box_handler(box)) as port:
        found = judged(f"http://127.0.0.1:{port}", "h3api", only=lambda clause: clause.id == word, tries=False)[word]
    return found.verdict, found.reason


def test_an_attach_is_made_again_after_its_answer_was_lost():
    writes: list[str] = []
    box = Wrong(answer=lambda method, path, number, answered: (writes.append(method), answered)[1])
    assert retried(box) == ("passed", "")
    assert [method for method in writes if method != "GET"] == ["POST", "POST"]


def test_an_attach_again_that_is_answered_as_done_and_changes_nothing_is_fine():
    def kind(method, path, number, answered):
        if method != "POST":
            return answered
        return answered[0], answered[1], json.dumps({"action": "assign", "result": [True], "remark": "done"})

    assert retried(Wrong(answer=kind)) == ("passed", "")


def test_an_attach_again_that_takes_the_device_to_another_port_is_not():
    box = Wrong()
    attach, asked = box.attach, []

    def other(device: str, port: str) -> str:
        asked.append(device)
        if len(asked) > 1:
            box.ports[device] = "3"
            return ""
        return attach(device, port)

    box.attach = other  # type: ignore[method-assign]
    verdict, reason = retried(box)
    assert verdict == "failed"
    assert reason.endswith("made again after its answer was lost, and answered as done: the device is on port '3' now")


def test_a_chassis_that_gives_up_what_nobody_waits_for_is_not_judged():
    box = Wrong()
    box.attach = lambda device, port: "no"  # type: ignore[method-assign]
    verdict, reason = retried(box)
    assert (verdict, reason[:58]) == ("skipped", "an attach whose answer is not read does not take effect: d")


def test_a_detach_is_made_again_after_its_answer_was_lost():
    writes: list[str] = []
    box = Wrong(answer=lambda method, path, number, answered: (writes.append(method), answered)[1])
    assert retried(box, "2.retry-detach") == ("passed", "")
    assert [method for method in writes if method != "GET"] == ["POST", "DELETE", "DELETE"]


def test_a_detach_again_that_is_refused_is_fine():
    box = Wrong()
    detach = box.detach
    box.detach = lambda device: detach(device) if box.ports[device] else "free"  # type: ignore[method-assign]
    assert retried(box, "2.retry-detach") == ("passed", "")


def test_a_detach_again_that_puts_the_device_on_a_port_is_not():
    box = Wrong()
    detach = box.detach

    def back(device: str) -> str:
        if box.ports[device]:
            return detach(device)
        box.ports[device] = "2"
        return ""

    box.detach = back  # type: ignore[method-assign]
    verdict, reason = retried(box, "2.retry-detach")
    assert verdict == "failed"
    assert reason.endswith("made again after its answer was lost, and answered as done: the device is on port '2' now")


def test_a_detach_that_nobody_waits_for_and_that_is_given_up_is_not_judged():
    box = Wrong()
    box.detach = lambda device: "no"  # type: ignore[method-assign]
    verdict, reason = retried(box, "2.retry-detach")
    assert (verdict, reason[:57]) == ("skipped", "a detach whose answer is not read does not take effect: d")


def test_what_one_of_two_at_once_raises_is_raised_once_both_have_ended():
    ended: list[int] = []

    def fails() -> int:
        raise OutOfTimeError("over")

    with pytest.raises(OutOfTimeError):
        at_once(fails, lambda: ended.append(1) or 1)
    assert ended == [1]


def test_no_move_is_begun_that_may_go_on_when_the_time_is_over():
    sent: list[str] = []
    box = Wrong(answer=lambda method, path, number, answered: (sent.append(method), answered)[1])
    with running(box_handler(box)) as port:
        client = Client(ChassisTarget(f"http://127.0.0.1:{port}", patience_s=5.0))
        bench = ClauseContext(client, clauses_of("h3api").face(client), limits=BRISK)
        bench.allow(("000100",), ("1",), None)
        assert bench.move("000100", "1", lambda: bool(threading.Event().wait(0.3)) or bench.face.attach("000100", "1"))
        assert bench.move("000100", None)
        client.deadline_s = time.monotonic() + 0.25
        sent.clear()
        with pytest.raises(OutOfTimeError, match="longer than the time left"):
            bench.move("000100", "1")
        bench.time_for("detach")
        client.deadline_s = time.monotonic() + 0.5
        bench.time_for("attach")
        with pytest.raises(OutOfTimeError):
            bench.time_for("attach", 2)
        bench.ask("000100", "1", lambda: not threading.Event().wait(0.4), alone=False)
        client.deadline_s = time.monotonic() + 0.35
        bench.time_for("attach")
    assert set(sent) == {"GET"}


def test_a_path_that_answers_is_looked_for_only_beside_the_one_that_does_not():
    asked: list[str] = []

    class Silent(Client):
        def _send(self, method: str, path: str, *more: object) -> HttpReply:
            asked.append(path)
            if path == "/silent":
                raise NoAnswerError("timeout", "no answer")
            return HttpReply(200, {}, b"{}")

    def elsewhere(home: str) -> bool:
        client = Silent(ChassisTarget("http://box"))
        bench = ClauseContext(client, clauses_of("h3api").face(client), limits=BRISK, home=home)
        client.send("GET", "/other")
        with pytest.raises(NoAnswerError):
            client.send("GET", "/silent")
        asked.clear()
        return bench._answers_elsewhere()

    assert elsewhere("/home")
    assert asked == ["/home"]
    assert not elsewhere("/silent")
    assert asked == [], "it has just been asked"
    assert not elsewhere("")


def asked_until(*statuses: int) -> tuple[int, int]:
    """How often a listing is asked for that is answered so, and then as it should be (less than none where it is given
    up); how often a failure is noted."""
    asked: list[int] = []

    def answer(method: str, path: str, number: int, answered: tuple[int, str, str]) -> tuple[int, str, str]:
        asked.append(number)
        status = statuses[len(asked) - 1] if len(asked) <= len(statuses) else answered[0]
        return status, answered[1], answered[2]

    client = LocalClient(Wrong(answer=answer))
    bench = ClauseContext(client, clauses_of("h3api").face(client), limits=BRISK)
    try:
        bench.read()
    except ListingUnavailableError:
        return -len(asked), len(bench.ledger.of("server-errors"))
    return len(asked), len(bench.ledger.of("server-errors"))


def test_a_listing_that_fails_is_asked_for_three_times():
    assert asked_until(500, 500) == (3, 2)
    assert asked_until(500, 500, 500, 500) == (-3, 3)


def test_a_device_that_is_lost_is_said_to_be_so_once():
    box = Wrong()
    client = LocalClient(box)
    bench = ClauseContext(client, clauses_of("h3api").face(client), limits=BRISK)
    bench.read()
    del box.ports["000200"]
    assert {*bench.read().rows} == {*bench.read().rows} == {"000100", "000300"}
    assert [note.text for note in bench.ledger.of("lost")] == ["device 000200 is not listed any more"]
    assert bench.ledger.of("complete") == ()
