"""Law 17: operations of one chassis queue, and its table shows what they did."""

import random

import pytest
import yaml
from msgspec.structs import replace

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.operation_queue import OperationQueue
from mews.emulator.chassis.table_edits import TableEdits
from mews.emulator.hardware.latency import Uniform
from mews.emulator.inventory.reading import parse_hardware
from mews.harness.catalogue.files import shipped
from mews.harness.chassis_feed import ChassisFeed
from tests.harness.invariants.stream import Stream

DEVICES = {"a": None, "b": None, "c": "2"}


def queued(stream):
    return [
        (each.first.number, each.after and each.after.number)
        for each in stream.judge.violations
        if each.invariant == 17
    ]


def begun(stream, device, port, kind="attach"):
    return stream.chassis(f"{kind}-begun", device, port), stream.operation


def finished(stream, device, operation, *, kind="attach", truth=True, answer="true", reason=""):
    fields = {"kind": kind, "answer": answer, "truth": truth, "reason": reason}
    return stream.chassis("operation-finished", device, stream.ports[device], operation=operation, **fields)


def test_two_that_queue_and_are_finished_in_order_are_well():
    stream = Stream(DEVICES)
    _, first = begun(stream, "a", "1")
    _, second = begun(stream, "c", None, "detach")
    stream.chassis("attached", "a", "1")
    finished(stream, "a", first)
    stream.chassis("detached", "c", None)
    finished(stream, "c", second, kind="detach")
    assert queued(stream) == []


def test_one_that_overtakes_is_named_with_the_one_in_progress():
    stream = Stream(DEVICES)
    earlier, _ = begun(stream, "a", "1")
    begun(stream, "b", "1")
    wrong = stream.chassis("attached", "b", "1")
    assert queued(stream) == [(wrong.number, earlier.number)]


def test_one_that_is_finished_out_of_turn_is_named_unless_it_is_cancelled():
    stream = Stream(DEVICES)
    earlier, _ = begun(stream, "a", "1")
    _, second = begun(stream, "b", "1")
    _, third = begun(stream, "b", "2")
    finished(stream, "b", second, truth=False, answer="false", reason="cancelled")
    assert queued(stream) == []
    wrong = finished(stream, "b", third, truth=False, answer="false", reason="already-attached")
    assert queued(stream) == [(wrong.number, earlier.number)]


def test_one_is_finished_once():
    stream = Stream(DEVICES)
    line, number = begun(stream, "a", "1")
    stream.chassis("attached", "a", "1")
    finished(stream, "a", number)
    wrong = finished(stream, "a", number)
    assert queued(stream) == [(wrong.number, line.number)]


def test_one_that_never_ends_is_named():
    stream = Stream(DEVICES)
    line, _ = begun(stream, "a", "1")
    stream.t = 1199.0
    stream.judge.pass_time(stream.t)
    assert queued(stream) == []
    stream.t = 1201.0
    stream.judge.pass_time(stream.t)
    assert queued(stream) == [(line.number, None)]


@pytest.mark.parametrize(("truth", "moves"), [(True, False), (False, True)])
def test_what_is_said_to_have_happened_is_what_the_table_shows(truth, moves):
    stream = Stream(DEVICES)
    line, number = begun(stream, "a", "1")
    effect = stream.chassis("attached", "a", "1") if moves else None
    wrong = finished(stream, "a", number, truth=truth)
    assert queued(stream) == [(wrong.number, (effect or line).number)]


def test_another_editor_is_no_lie_of_the_chassis():
    stream = Stream(DEVICES)
    _, number = begun(stream, "a", "1")
    stream.chassis("attached", "a", "1")
    stream.chassis("edited", "a", "2", cause="edit")
    finished(stream, "a", number)
    assert queued(stream) == []


def test_an_attach_of_a_device_that_is_attached_is_named():
    stream = Stream(DEVICES)
    line, _ = begun(stream, "c", "1")
    wrong = stream.chassis("attached", "c", "1")
    assert queued(stream) == [(wrong.number, line.number)]


@pytest.mark.parametrize(("back", "named"), [(False, True), (True, False)])
def test_a_device_without_a_link_is_attached_nowhere(back, named):
    stream = Stream(DEVICES)
    dark = stream.chassis("link-down", "a", None)
    begun(stream, "a", "1")
    if back:
        stream.chassis("link-up", "a", None)
    wrong = stream.chassis("attached", "a", "1")
    assert queued(stream) == ([(wrong.number, dark.number)] if named else [])


def test_a_device_that_is_put_in_anew_has_its_link():
    stream = Stream(DEVICES)
    stream.chassis("link-down", "a", None)
    stream.chassis("removed", "a", None)
    stream.chassis("inserted", "a", None)
    begun(stream, "a", "1")
    stream.chassis("attached", "a", "1")
    assert queued(stream) == []


def test_what_a_restart_cut_off_is_forgotten():
    stream = Stream(DEVICES)
    begun(stream, "a", "1")
    rows = {device: stream.row(device) for device in DEVICES}
    stream.journal.write("chassis", "chassis/A", "table", pool="pool-0", ports={}, devices=rows)
    stream.operation = 0
    _, number = begun(stream, "a", "1")
    stream.chassis("attached", "a", "1")
    finished(stream, "a", number)
    assert queued(stream) == []


def no_queue(self, kind, device, port, now_s, begin=OperationQueue.begin):
    self._free_s = now_s
    return begin(self, kind, device, port, now_s)


def no_refusal(self, operation):
    return None


def no_effect(self, device, port, cause):
    return None


def happened(self, operation, finished=OperationQueue._emit_finished):
    operation.refusal = None
    finished(self, operation)


PLANTED = {
    "operations that do not queue": (OperationQueue, "begin", no_queue, "attached", "attach-begun"),
    "a refused attach that is accepted": (OperationQueue, "_refusal", no_refusal, "attached", "attach-begun"),
    "an attach that changes nothing": (TableEdits, "move", no_effect, "operation-finished", "attach-begun"),
    "a refusal that is kept quiet": (OperationQueue, "_emit_finished", happened, "operation-finished", "attach-begun"),
}


def two_clients():
    """They attach a device each, and one of them the other's too, at a chassis that takes its time."""
    path = shipped("hardware", "unattached")
    [spec] = parse_hardware(yaml.safe_load(path.read_text()), str(path)).chassis
    spec = replace(spec, profile=replace(spec.profile, attach=Uniform(6.0, 18.0)))
    stream = Stream({})
    feed = ChassisFeed(stream.journal, spec)
    box = EmulatedChassis(spec, random.Random(2))
    box.events.listen(lambda each: feed.on_event(each.number, each.event, each.fields))
    feed.begin()
    free = [device.id for device in spec.devices if device.port is None]
    box.begin_attach(free[0], "1", 1.0)
    box.begin_attach(free[1], "1", 2.0)
    box.begin_attach(free[0], "2", 3.0)
    box.settle(100.0)
    stream.judge.pass_time(100.0)
    found = [each for each in stream.judge.violations if each.invariant == 17]
    return [(each.first.event, each.after and each.after.event) for each in found]


def test_the_right_chassis_is_found_right():
    assert two_clients() == []


@pytest.mark.parametrize(("part", "method", "wrong", "first", "after"), PLANTED.values(), ids=PLANTED)
def test_a_chassis_with_one_wrong_line_is_named(monkeypatch, part, method, wrong, first, after):
    monkeypatch.setattr(part, method, wrong)
    assert two_clients()[:1] == [(first, after)]
