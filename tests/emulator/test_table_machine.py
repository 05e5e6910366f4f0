"""The table, stored on disk, against a dict: whatever is done, both say the same, also after the power was cut."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.errors import NotStoredError, RefusalError, StoreError
from mews.emulator.chassis_store import StateFile
from mews.emulator.hardware.inventory import DeviceSpec
from tests.emulator.boxes import TIMED, spec

DEVICES = st.sampled_from(["d0", "d1", "d2", "d3", "d4"])
PORTS = st.sampled_from(["1", "2", "3", "9", ""])
CABLED = ("1", "2")


class TableMachine(RuleBasedStateMachine):
    """One management CPU, so that every operation here is finished before the next."""

    @initialize()
    def power_on(self):
        self.folder = tempfile.TemporaryDirectory()
        self.now_s = 0.0
        self.spec = spec(devices=4, slots=5, profile=TIMED)
        self.model = dict.fromkeys(("d0", "d1", "d2", "d3"), "1")
        self._open()

    def _open(self):
        self.state = StateFile(Path(self.folder.name) / "state")
        self.box = EmulatedChassis(self.spec, random.Random(1), store=self.state.table("A"))

    def _done(self, operation):
        self.now_s = operation.answer_s
        return self.box.finish(operation, self.now_s)

    @rule(device=DEVICES, port=PORTS)
    def attach(self, device, port):
        well = device in self.model and self.model[device] is None and port in CABLED
        assert self._done(self.box.begin_attach(device, port, self.now_s)).ok is well
        if well:
            self.model[device] = port

    @rule(device=DEVICES)
    def detach(self, device):
        assert self._done(self.box.begin_detach(device, self.now_s)).ok is (device in self.model)
        if device in self.model:
            self.model[device] = None

    @rule(device=DEVICES, port=st.one_of(st.none(), PORTS))
    def edit(self, device, port):
        well = device in self.model and (port is None or port in CABLED)
        try:
            self.box.edits.edit(device, port, self.now_s)
        except RefusalError:
            assert not well
        else:
            assert well
            self.model[device] = port

    @rule(device=DEVICES)
    def insert(self, device):
        well = device not in self.model and len(self.model) < 5
        try:
            self.box.edits.insert(DeviceSpec(device, f"GPU-{device}"), self.now_s)
        except RefusalError:
            assert not well
        else:
            assert well
            self.model[device] = None

    @rule(device=DEVICES)
    def pull(self, device):
        try:
            self.box.edits.remove(device, self.now_s)
        except RefusalError:
            assert device not in self.model
        else:
            del self.model[device]

    @rule(device=DEVICES, port=PORTS)
    def lose_the_process_in_an_attach(self, device, port):
        self.box.begin_attach(device, port, self.now_s)
        self.state.close()
        self._open()

    @rule()
    def reset(self):
        self.box.reset(self.now_s)
        self.model = dict.fromkeys(("d0", "d1", "d2", "d3"), "1")

    @invariant()
    def both_say_the_same(self):
        if hasattr(self, "box"):
            assert {row.device: row.port for row in self.box.rows(self.now_s)} == self.model

    def teardown(self):
        if hasattr(self, "state"):
            self.state.close()
            self.folder.cleanup()


TestTable = TableMachine.TestCase
TestTable.settings = settings(
    max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_a_full_disk_fails_the_operation_and_leaves_the_table(tmp_path: Path):
    state = StateFile(tmp_path / "state")
    box = EmulatedChassis(spec(devices=600, slots=2000), random.Random(1), store=state.table("A"))
    state.limit_pages(1)
    before = box.rows(0.0)
    inserted = 0
    with pytest.raises(NotStoredError, match="full"):
        while inserted < 1000:
            box.edits.insert(DeviceSpec(f"x{inserted}", f"GPU-x{inserted}", serial="s" * 100), 0.0)
            inserted += 1
    assert box.rows(0.0)[: len(before)] == before
    assert len(box.rows(0.0)) == len(before) + inserted
    state.close()
    again = StateFile(tmp_path / "state")
    assert len(again.table("A").load()) == len(before) + inserted
    again.close()


class FullDisk:
    """A store that holds nothing more."""

    def load(self):
        return None

    def replace(self, rows):
        return None

    def save(self, row):
        raise StoreError("disk full")

    remove = save


def test_what_the_store_refuses_is_answered_as_not_done_and_did_not_happen():
    box = EmulatedChassis(spec(), random.Random(1), store=FullDisk())
    operation = box.begin_detach("d0", 0.0)
    answer = box.finish(operation, 0.0)
    assert (answer.ok, answer.refusal.code) == (False, "not-stored")
    assert box.row("d0", 0.0).port == "1"


def test_a_state_file_is_held_by_one_process_alone(tmp_path: Path):
    state = StateFile(tmp_path / "state")
    with pytest.raises(StoreError, match="locked"):
        StateFile(tmp_path / "state")
    state.close()


def test_a_state_file_that_is_none_is_told(tmp_path: Path):
    (tmp_path / "state").write_text("this is no database, but long enough to be looked at as one" * 20)
    with pytest.raises(StoreError, match="not a database"):
        StateFile(tmp_path / "state")
