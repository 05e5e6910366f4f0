"""The boards of a chassis: installed, reported on, set."""

import json

import pytest

from mews.emulator.telemetry.chassis import BoardReport, ChassisTelemetry, InstalledBoard
from mews.emulator.telemetry.controls import BoardControls
from mews.emulator.telemetry.gpu import DriverCounts
from mews.emulator.telemetry.load import constant, parse_load


@pytest.fixture
def boards():
    telemetry = ChassisTelemetry("1")
    telemetry.begin([InstalledBoard(f"00{n}", f"GPU-{n}", "V100", powered=n < 3) for n in (1, 2, 3)], 0)
    return telemetry


def loads(**given):
    return BoardReport({key: constant(percent) for key, percent in given.items()})


def watts(boards, now_s=0.0):
    return [boards.reading(device, now_s).power_mw / 1000 for device in boards.devices()]


def test_a_board_on_a_port_idles_and_another_stands_by(boards):
    assert watts(boards) == [25, 25, 3]
    boards.install(InstalledBoard("003", "GPU-3", "V100", powered=True), 7)
    boards.install(InstalledBoard("001", "GPU-1", "V100", powered=False), 7)
    assert watts(boards, 7) == [3, 25, 25]


def test_a_report_is_all_that_a_host_has(boards):
    boards.report("host-1", {"GPU-1": loads(a=50), "GPU-2": loads(b=100), "GPU-9": loads(c=1)}, 1)
    assert watts(boards, 1) == [150, 250, 3]
    version = boards.version
    boards.report("host-1", {"GPU-1": loads(a=50), "GPU-2": loads(b=100)}, 2)
    assert boards.version == version
    boards.report("host-1", {"GPU-2": loads(b=100)}, 3)
    assert watts(boards, 3) == [25, 250, 3]
    boards.report("host-2", {"GPU-2": loads(b=100)}, 3)
    boards.report("host-1", {}, 4)
    assert [process.key for process in boards.reading("002", 4).processes] == ["host-2/b"]


def test_a_load_that_is_reported_again_goes_on_where_it_is(boards):
    curve = BoardReport({"a": parse_load({"curve": {0: 0, 10: 100}})})
    boards.report("host-1", {"GPU-1": curve}, 0)
    boards.report("host-1", {"GPU-1": BoardReport.from_value(curve.as_value())}, 9)
    assert boards.reading("001", 10).utilization_percent == 100


def test_what_a_driver_counts_stays_with_the_board(boards):
    boards.report("host-1", {"GPU-1": BoardReport(counts=DriverCounts("1", 5, 1))}, 0)
    boards.report("host-2", {}, 0)
    assert boards.gpu("001").counters.ecc_volatile_corrected == 5
    boards.report("host-1", {}, 1)
    assert boards.gpu("001").counters.ecc_volatile_corrected == 0
    boards.report("host-2", {"GPU-1": BoardReport(counts=DriverCounts("1", 2))}, 2)
    counters = boards.gpu("001").counters
    assert (counters.ecc_volatile_corrected, counters.ecc_aggregate_corrected) == (2, 7)
    assert counters.ecc_aggregate_uncorrected == 1


def test_one_board_or_all_of_them_are_set_or_none(boards):
    boards.set("002", {"power": 99}, 0)
    assert watts(boards) == [25, 99, 3]
    boards.set("all", {"power": 88}, 0)
    assert watts(boards) == [88, 88, 88]
    with pytest.raises(ValueError, match=r"^power 300: must be a number from 0 to 250 watts"):
        boards.set("all", {"power": 300}, 0)
    boards.set("all", {"all": "none"}, 0)
    assert watts(boards) == [25, 25, 3]
    with pytest.raises(ValueError, match=r"^device '009': must be one of 001, 002, 003, all"):
        boards.set("009", {"power": 1}, 0)


def test_a_board_that_was_pulled_out_begins_anew(boards):
    boards.report("host-1", {"GPU-1": loads(a=50)}, 0)
    boards.remove("001")
    boards.install(InstalledBoard("001", "GPU-1", "V100", powered=True), 5)
    assert boards.reading("001", 5).energy_mj == 0
    assert boards.reading("001", 5).processes == ()
    boards.report("host-1", {"GPU-1": loads(a=50)}, 5)
    assert boards.reading("001", 5).utilization_percent == 50


def test_what_is_no_report_is_refused():
    with pytest.raises(ValueError, match=r"^report 5: must be a mapping of loads and counts"):
        BoardReport.from_value(5)


class Kept:
    """A store in memory; ``age_s`` has passed since the last write when it is read."""

    def __init__(self):
        self.states, self.age_s = {}, 0.0

    def load(self):
        return {device: (state, self.age_s) for device, state in self.states.items()}

    def save(self, states):
        self.states |= json.loads(json.dumps(states))

    def remove(self, device):
        self.states.pop(device, None)


def test_boards_go_on_where_they_were_when_they_are_read_back():
    store, board = Kept(), InstalledBoard("001", "GPU-1", "V100", powered=True)
    first = ChassisTelemetry("1", store)
    first.begin([board], 0)
    curve = BoardReport({"a": parse_load({"curve": {0: 100, 60: 0}})}, DriverCounts("s", 3, 1))
    first.report("host-1", {"GPU-1": curve}, 100)
    store.age_s = 50.0
    second = ChassisTelemetry("1", store)
    second.begin([board], 0)
    assert second.reading("001", 0) == first.reading("001", 150)
    assert second.reading("001", 20) == first.reading("001", 170)
    second.report("host-1", {"GPU-1": curve}, 20)
    assert second.reading("001", 20) == first.reading("001", 170)
    second.report("host-1", {}, 20)
    assert second.reading("001", 20).processes == ()
    assert second.gpu("001").counters.ecc_aggregate_corrected == 3
    assert second.gpu("001").counters.ecc_volatile_corrected == 0


def test_a_store_that_is_damaged_is_as_good_as_none():
    store, board = Kept(), InstalledBoard("001", "GPU-1", "V100", powered=True)
    store.states = {"001": {"uuid": "GPU-1", "loads": 5}}
    telemetry = ChassisTelemetry("1", store)
    telemetry.begin([board], 0)
    assert telemetry.reading("001", 0).power_mw == 25_000


def driven(session="1.0+0.0", ecc=None, **controls):
    return BoardReport({"a": constant(100)}, DriverCounts(session), BoardControls(**controls), ecc)


def test_only_the_host_whose_driver_has_a_board_controls_it(boards):
    boards.report("host-1", {"GPU-1": driven(power_limit_mw=150_000)}, 1)
    assert boards.reading("001", 1).power_mw == 150_000
    boards.report("host-2", {"GPU-1": BoardReport(controls=BoardControls(power_limit_mw=100_000))}, 2)
    assert boards.reading("001", 2).power_mw == 150_000
    boards.report("host-1", {}, 3)
    assert boards.reading("001", 3).power_limit_mw == 250_000


def test_a_board_takes_its_ecc_mode_along_to_another_host(boards):
    boards.report("host-1", {"GPU-1": driven(ecc=False)}, 1)
    assert boards.gpu("001").record(0).ecc == (None, False)
    boards.report("host-1", {}, 2)
    boards.report("host-2", {"GPU-1": driven("7.0+0.0")}, 3)
    assert boards.gpu("001").record(0).ecc == (False, False)


def test_a_report_of_controls_goes_over_the_wire_and_anything_else_is_refused():
    report = driven(ecc=True, gpu_clocks=(900, 1200), fan=50)
    assert BoardReport.from_value(json.loads(json.dumps(report.as_value()))) == report
    for wrong in ({"controls": {"x": 1}}, {"controls": 5}, {"ecc": "on"}):
        with pytest.raises(ValueError):
            BoardReport.from_value({**report.as_value(), **wrong})
