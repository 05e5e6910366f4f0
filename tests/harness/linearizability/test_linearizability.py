"""Whether concurrent requests to a chassis could have been done one after the other."""

import itertools
import random
import threading

import pytest

import mews.testing
from mews.harness.linearizability.checker import not_linearizable
from mews.harness.linearizability.lookup import UNKNOWN_END_S, LookupAnswer, LookupCall, LookupKind, outcomes
from mews.harness.linearizability.requests import calls_of
from tests.harness.linearizability.planted import DEVICES, PLANTED, World, found

A, D, R = LookupKind.ATTACH, LookupKind.DETACH, LookupKind.READ
DONE, REFUSED, UNKNOWN = LookupAnswer


def calls(*rows):
    """(kind, begun, ended, port, answer)."""
    return [
        LookupCall(number, f"c{number}", "d", kind, begun, ended, port, *answer)
        for number, (kind, begun, ended, port, *answer) in enumerate(rows, 1)
    ]


def first_wrong(*rows, start=None):
    found = not_linearizable(calls(*rows), {"d": start})
    return [(wrong.call.number, wrong.after and wrong.after.number) for wrong in found]


@pytest.mark.parametrize(
    "rows",
    [
        [(A, 0, 1, "1"), (R, 2, 3, "1"), (D, 4, 5, None), (R, 6, 7, None)],
        [(A, 0, 5, "1"), (R, 1, 2, None), (R, 3, 4, "1")],
        [(A, 0, 5, "1"), (A, 0, 5, "2", REFUSED), (R, 6, 7, "1")],
        [(A, 0, UNKNOWN_END_S, "1", UNKNOWN), (R, 2, 3, None), (R, 4, 5, "1")],
        [(D, 0, 1, None), (D, 2, 3, None)],
        [(A, 0, 1, "1"), (D, 2, UNKNOWN_END_S, None, UNKNOWN), (A, 3, 4, "2"), (R, 5, 6, "2")],
    ],
)
def test_what_some_order_explains_is_well(rows):
    assert first_wrong(*rows) == []


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        pytest.param([(A, 0, 1, "1"), (A, 2, 3, "2")], (2, 1), id="a refused attach that is accepted"),
        pytest.param([(A, 0, 1, "1"), (R, 2, 3, None)], (2, 1), id="a lost update"),
        pytest.param([(A, 0, 1, "1"), (D, 2, 3, None), (R, 4, 5, "1")], (3, 2), id="a stale read"),
        pytest.param([(A, 0, 5, "1"), (R, 1, 2, "1"), (R, 3, 4, None)], (3, 2), id="there and gone again"),
        pytest.param([(A, 0, 1, "1", REFUSED)], (1, None), id="a refusal of what is free"),
        pytest.param([(A, 0, 4, "1"), (A, 1, 3, "2"), (R, 5, 6, "1")], (1, None), id="two attaches at the same time"),
    ],
)
def test_the_first_answer_that_nothing_explains_is_named(rows, wrong):
    assert first_wrong(*rows) == [wrong]


def test_each_device_is_looked_at_by_itself_and_may_begin_anywhere_where_nobody_says():
    one, other = calls((R, 0, 1, "1"), (A, 2, 3, "2")), calls((R, 0, 1, None))
    assert not_linearizable([*other], {}) == []
    [wrong] = not_linearizable(one, {})
    assert str(wrong) == (
        "no order of the requests explains request 2 (2.000-3.000 s, c2): attach d 2: done; "
        "it came after request 1 (0.000-1.000 s, c1): read d 1: done"
    )


def test_a_sequential_model_has_one_outcome_of_what_was_answered():
    for call in calls((A, 0, 1, "1"), (D, 0, 1, None), (R, 0, 1, "1")):
        assert all(len(outcomes(call, port)) <= 1 for port in (None, "1", "2"))


def test_the_right_chassis_is_linearizable():
    for seed in range(60):
        world = World(random.Random(seed))
        assert not_linearizable(world.play(2 + seed % 3), dict.fromkeys(DEVICES)) == []


@pytest.mark.parametrize("name", PLANTED)
def test_of_planted_faults_nine_in_ten_are_found_or_as_many_as_can_be(name):
    """The others are explained by some order: whoever made an update go may have been another client."""
    least = 0.9 if name in ("refused attach accepted", "accepted attach refused") else 0.7
    assert found(PLANTED[name], 40) >= 40 * least


def explained(history, start):
    """By trying every order."""
    for order in itertools.permutations(history):
        late = any(one.begun_s > other.ended_s for n, one in enumerate(order) for other in order[n:])
        ports = {start}
        for call in order:
            ports = {after for port in ports for after in outcomes(call, port)}
        if ports and not late:
            return True
    return False


def test_the_checker_finds_what_trying_every_order_finds():
    rng, verdicts = random.Random(1), []
    for _ in range(300):
        rows = []
        for _ in range(rng.randint(2, 5)):
            begun, kind = rng.uniform(0, 6), rng.choice((A, A, D, R))
            answer = REFUSED if kind is A and rng.random() < 0.4 else DONE
            rows.append((kind, begun, begun + rng.uniform(0.5, 3), rng.choice("12") if kind is not D else None, answer))
        history = calls(*rows)
        verdicts.append(explained(history, None))
        assert (not_linearizable(history, {"d": None}) == []) is verdicts[-1]
    assert 50 < sum(verdicts) < 250


def test_requests_of_a_dialect_whose_replies_lie_say_nothing_but_by_their_lists():
    attach = {
        "number": 1, "t": 1.0, "took_s": 2.0, "chassis": "A", "dialect": "h3api", "method": "POST", "agent": "a",
        "path": "/h3api/v1/allocation", "body": '{"gep":"0","port_gid":"30h","dev_gid":"001300"}', "status": 200,
        "answer": '{"action":"assign","result":[false],"remark":"done"}',
    }  # fmt: skip
    [call] = calls_of([attach])
    assert (call.device, call.port, call.answer, call.ended_s) == ("A/001300", "48", UNKNOWN, UNKNOWN_END_S)
    assert calls_of([{**attach, "dialect": "redfish"}]) == []


def request(chassis, method, body=None):
    import json
    import urllib.request

    data = None if body is None else json.dumps(body).encode()
    path = "/resources" if body is None else "/allocation"
    sent = urllib.request.Request(chassis.urls["A"]["resource-pool"] + path, data, method=method)
    try:
        with urllib.request.urlopen(sent, timeout=20) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.wall
def test_what_four_clients_of_a_served_chassis_were_answered_is_linearizable():
    with mews.testing.chassis(hardware="unattached", in_process=True) as chassis:

        def client(number):
            rng = random.Random(number)
            for _ in range(15):
                body = {"devid": rng.choice(DEVICES), "hostport": rng.choice("12")}
                match rng.randrange(4):
                    case 0:
                        request(chassis, "GET")
                    case 1:
                        request(chassis, "DELETE", {"devid": body["devid"]})
                    case _:
                        request(chassis, "POST", body)

        threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sent = list(chassis.requests)
        assert {call.answer for call in calls_of(each.as_dict() for each in sent)} == {DONE, REFUSED}
        chassis.requests.assert_linearizable({f"A/{device}": None for device in DEVICES})
        wrong = {**next(each for each in sent if each.status == 400).as_dict(), "status": 204, "answer": ""}
        rows = [wrong if each.number == wrong["number"] else each.as_dict() for each in sent]
        assert not_linearizable(calls_of(rows), {f"A/{device}": None for device in DEVICES})
