"""Laws of a system's protocol: which lines they are given, what a breach names, and what is known by design."""

import pytest
from msgspec.structs import replace

from mews.harness.invariants.systems import judged_systems
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant
from tests.harness.invariants.stream import Stream
from tests.harness.invariants.test_systems import TOY


class DetachAfterAttach(Invariant):
    """A toy's law: it counts on the last attach, and looks at two kinds of lines."""

    number = 91
    name = "a device is attached before it is detached"
    events = frozenset({("chassis", "attached"), ("chassis", "detached")})

    def __init__(self, known=""):
        self.known = known
        self.lines = []
        self.attached = None

    def on_line(self, line, state):
        self.lines.append((line.layer, line.event))
        if line.event == "attached":
            self.attached = line
        elif line.fields["device"] == "000200":
            yield Breach(("000200",), "000200 was detached", line, after=self.attached, known=self.known)


def judged(known=""):
    law = DetachAfterAttach(known)
    toy = replace(
        TOY, judging=replace(TOY.judging, laws=lambda configuration: (law,) if configuration == "configured" else ())
    )
    stream = Stream({"000100": None, "000200": "0"}, judged_systems((ConfiguredSystem(toy, None, "configured"),), ()))
    stream.attach("000100", "1")
    stream.kubelet("host-1", "registered", resource="toy.dev/gpu")
    stream.detach("000200")
    return law, stream.judge


def test_a_law_of_the_configuration_is_given_the_lines_that_it_names_and_no_others():
    law, _ = judged()
    assert set(law.lines) == {("chassis", "attached"), ("chassis", "detached")}


def test_a_violation_names_the_line_that_broke_the_law_and_the_line_that_it_should_have_come_after():
    _, judge = judged()
    (violation,) = [one for one in judge.violations if one.invariant == 91]
    assert (violation.first.event, violation.after.event) == ("detached", "attached")
    document = violation.as_dict()
    assert document["after"]["line"] == violation.after.number < document["first"]["line"]
    assert "it should have come after line" in str(violation)
    assert "known" not in document


def test_what_a_published_system_breaks_by_design_is_no_violation_and_is_reported():
    _, judge = judged("the published design over-commits")
    assert 91 not in {one.invariant for one in judge.violations}
    (known,) = judge.known
    assert known.as_dict()["known"] == "the published design over-commits"


@pytest.mark.parametrize("hook", ["on_line", "on_time", "on_objects"])
def test_a_law_that_fails_is_a_violation_and_judges_no_more_and_whoever_wrote_the_line_goes_on(hook, monkeypatch):
    calls = []

    def fails(*given):
        calls.append(hook)
        raise KeyError("nope")

    monkeypatch.setattr(DetachAfterAttach, hook, fails)
    _, judge = judged()
    objects = ClusterObjects({}, {}, 0.0)
    for _ in range(2):
        judge.on_objects(9.0, objects)
    (violation,) = [one for one in judge.violations if one.invariant == 91 and "itself" in one.what]
    assert violation.what.startswith("the law itself fails: KeyError: 'nope' (test_laws.py:")
    assert (violation.first is not None) is (hook == "on_line")
    assert calls == [hook]
    assert judge.state.world.devices["0-000200"].host is None
