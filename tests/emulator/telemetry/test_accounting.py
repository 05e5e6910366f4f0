"""Accounting of a board's processes: means over their lives, a circular buffer, and how it begins anew."""

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.telemetry import accounting
from mews.emulator.telemetry.gpu import GpuTelemetry
from mews.emulator.telemetry.load import constant, parse_load
from mews.emulator.telemetry.record import BoardRecord
from mews.emulator.telemetry.units import ns


def board():
    return GpuTelemetry("GPU-1", PROFILES["A100"], seed="1", powered=True)


def shown(one, at_s):
    """Key -> (began, ended, percent) of each, in seconds."""
    accounts = one.record(ns(at_s)).accounted
    return {
        each.key: (each.began_ns / 1e9, None if each.ended_ns is None else each.ended_ns / 1e9, each.utilization)
        for each in accounts
    }


def test_nothing_is_kept_while_it_is_off():
    one = board()
    one.begin("a", constant(50), 0)
    one.end("a", ns(10))
    assert shown(one, 20) == {}
    assert not one.account(0, ns(20))


def test_a_process_has_the_mean_over_its_life():
    one = board()
    assert one.account(1, 0) and not one.account(1, ns(1))
    one.begin("a", parse_load({"curve": [[0, 20], [10, 80]]}), ns(10))
    assert shown(one, 15) == {"a": (10, None, 20)}
    assert shown(one, 30) == {"a": (10, None, 50)}
    one.begin("b", constant(40, 512), ns(30))
    one.end("a", ns(40))
    told = shown(one, 50)
    assert list(told) == ["a", "b"]
    assert told["a"][:2] == (10, 40) and told["a"][2] == (10 * 20 + 10 * 80 + 10 * 67) // 30
    assert told["b"] == (30, None, (10 * 33 + 10 * 40) // 20)


def test_looking_changes_nothing():
    often, once = board(), board()
    for one in (often, once):
        one.account(1, 0)
        one.begin("a", parse_load({"walk": {"every_s": 3, "step": 20}}), ns(2))
    for at_s in range(3, 60, 7):
        often.record(ns(at_s))
    for one in (often, once):
        one.end("a", ns(60))
    assert shown(often, 70) == shown(once, 70) != {}


def test_processes_that_ran_already_count_from_then_on():
    one = board()
    one.begin("a", constant(70), 0)
    one.account(1, ns(10))
    assert shown(one, 20) == {"a": (10, None, 70)}
    one.account(2, ns(20))
    assert shown(one, 30) == {"a": (20, None, 70)}
    one.account(0, ns(40))
    assert shown(one, 50) == {}


def test_the_buffer_is_circular(monkeypatch):
    monkeypatch.setattr(accounting, "BUFFER", 3)
    one = board()
    one.account(1, 0)
    for number in range(5):
        one.begin(f"p{number}", constant(10), ns(number))
        one.end(f"p{number}", ns(number + 0.5))
    assert list(shown(one, 9)) == ["p2", "p3", "p4"]


def test_the_most_memory_counts():
    one = board()
    one.account(1, 0)
    for mib in (100, 700, 300):
        one.begin("a", constant(10, mib), ns(mib))
    assert one.record(ns(999)).accounted[0].memory_mib == 700


def test_a_record_carries_accounts_and_totals():
    one = board()
    one.account(1, 0)
    one.begin("a", parse_load({"walk": {"every_s": 3, "step": 20}}), 0)
    record = one.record(ns(100), 16)
    assert BoardRecord.from_value(record.as_value()) == record and record.accounted
