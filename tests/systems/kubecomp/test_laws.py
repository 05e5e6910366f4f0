"""The laws of KubeComp's protocol, by lines: what they must report, what they must not, and which line they name."""

import pytest
from msgspec.structs import replace

from mews.harness.invariants.systems import judged_systems
from mews.kube.system.configured import ConfiguredSystem
from mews.systems.kubecomp.board_lines import board_news
from mews.systems.kubecomp.laws.board import ENDED_KEPT, Board
from mews.systems.kubecomp.policy import Consent
from mews.systems.kubecomp.records import (
    Intent,
    NodeReport,
    WithdrawRequest,
    intent_data,
    report_data,
    withdraw_data,
)
from mews.systems.kubecomp.system import SYSTEM
from tests.harness.invariants.stream import Stream
from tests.systems.kubecomp.world import config_of, hardware

GPU = "falcon.com/gpu"
NOTES = ("use_falcon", "dst_node", "gpu_demand")


class Story(Stream):
    """Device a is on host-2, and host-1 wants it for pod p; each step writes the lines that it makes."""

    def __init__(self, devices=None, **config):
        self.config = replace(config_of(hardware(4, 4)), **config)
        systems = judged_systems((ConfiguredSystem(SYSTEM, SYSTEM.options(), self.config),), ())
        super().__init__(devices or {"a": "2", "b": "2"}, systems, allocatable_s=30.0)
        rows = {f"0-{d}": {"gpuid": f"0-{d}", "uuid": f"GPU-{d}", "kind": "GPU", "healthy": True} for d in self.ports}
        self.journal.write("host", "host/host-2", "table", devices=rows)
        self.announce("host-2", *self.ports)

    def api(self, actor, event, **fields):
        return self.journal.write("api", actor, event, **fields)

    def announce(self, host, *devices):
        healthy = [f"0-{device}" for device in devices]
        return self.kubelet(host, "devices", resource=GPU, healthy=healthy, unhealthy=[])

    def at(self, t):
        self.t = t
        self.judge.pass_time(t)

    def withdrawal(self, event, device="a", request="r", node="host-2", **more):
        return self.api(f"withdrawal/0-{device}", event, node=node, gpuid=f"0-{device}", request=request, **more)

    def begin(self, device="a", request="r", target="1"):
        more = {"origin": "2", "origin_node": "host-2", "target": target, "target_node": "host-1", "pool": "pool-0"}
        return self.api(
            f"move/0-{device}", "move-begun", gpuid=f"0-{device}", request=request, pod="default/p", uid="p", **more
        )

    def end_move(self, device="a", request="r"):
        return self.api(f"move/0-{device}", "move-ended", gpuid=f"0-{device}", request=request)

    def take_out(self, device="a", host="host-2"):
        row = {"gpuid": f"0-{device}", "uuid": f"GPU-{device}", "kind": "GPU", "healthy": False}
        return self.journal.write("host", f"host/{host}", "function-removed", **row)

    def create(self, name="p", asks=1, node=""):
        who = {"uid": name, "scheduler": "kubecomp-scheduler", "node": node, "phase": "Pending"}
        return self.api(f"pod/default/{name}", "created", **who, requests={GPU: asks})

    def bind(self, name="p", node="host-1"):
        return self.api(f"pod/default/{name}", "bound", uid=name, node=node)

    def note(self, name="p", node="host-1", lacks=1):
        values = ("true", node, str(lacks)) if node else (None, None, None)
        noted = self.api(
            f"pod/default/{name}", "annotations", uid=name, annotations=dict(zip(NOTES, values, strict=True))
        )
        if node:
            said = {"type": "Normal", "reason": "Reconfig", "object": f"pod/default/{name}", "message": "waits"}
            self.api("kubecomp-scheduler", "event", **said)
        return noted

    def moves(self, *leave_out):
        """A reconfiguration as it should be, but for the steps that are left out."""
        steps = {
            "asked": lambda: self.withdrawal("asked"),
            "taken out": self.take_out,
            "consented": lambda: self.withdrawal("consented"),
            "move-begun": self.begin,
            "detached": lambda: self.detach("a"),
            "attached": lambda: self.attach("a", "1"),
            "move-ended": self.end_move,
            "asked-back": lambda: self.withdrawal("asked-back"),
        }
        lines = {}
        for name, step in steps.items():
            if name not in leave_out:
                # A node consents in the moment in which its host lets go.
                self.at(self.t + (0.0 if name == "consented" and "taken out" in lines else 1.0))
                lines[name] = step()
        self.at(self.t + 1.0)
        return lines

    def found(self, number):
        return [
            (each.first.event, each.after and each.after.event)
            for each in self.judge.violations
            if each.invariant == number
        ]


def a_story(**config):
    story = Story(**config)
    story.create()
    story.note()
    return story


def test_a_reconfiguration_as_it_should_be_breaks_no_law():
    story = a_story()
    story.moves()
    story.announce("host-1", "a")
    story.bind()
    story.note(node="")
    story.at(10.0)
    story.api("pod/default/p", "condition", uid="p", type="PodReadyToStartContainers", status="False", reason="")
    story.at(400.0)
    assert [str(each) for each in story.judge.violations] == []


@pytest.mark.parametrize(
    ("left_out", "number", "named"),
    [
        (("consented",), 30, ("detach-begun", "asked")),
        (("asked", "consented", "asked-back"), 30, ("detach-begun", "move-begun")),
        (("taken out",), 31, ("detach-begun", "consented")),
        (("move-begun", "move-ended"), 37, ("detach-begun", "asked")),
    ],
)
def test_a_step_that_is_left_out_is_named_with_the_one_before(left_out, number, named):
    story = a_story()
    story.moves(*left_out)
    assert story.found(number)[0] == named
    unseen = {96} if "taken out" in left_out else set()  # nor does this host see the device go
    assert {each for each in story.numbers() if each >= 17} == {number, *unseen}


@pytest.mark.parametrize("late_s", [0.0, 0.2])
def test_a_node_consents_as_its_host_lets_go(late_s):
    story = a_story()
    story.withdrawal("asked")
    story.at(1.0)
    story.take_out()
    story.at(1.0 + late_s)
    story.withdrawal("consented")
    assert story.found(88) == ([("consented", "function-removed")] if late_s else [])


def test_a_node_does_not_refuse_what_it_has_consented_to():
    for ended_s, found in ((None, [("refused", "consented")]), (0.0, [("refused", "consented")]), (1.0, [])):
        story = a_story()
        story.withdrawal("asked")
        story.withdrawal("consented")
        if ended_s is not None:
            story.withdrawal("consent-ended")
            story.at(ended_s)
        story.withdrawal("refused", reason="held")
        assert story.found(38) == found


def refusal(story, *, reported=True, reason="held"):
    story.withdrawal("asked")
    story.at(1.0)
    story.withdrawal("refused", reason=reason)
    story.withdrawal("asked-back")
    if reported:
        words = "0-a cannot be taken from host-2: held"
        said = {"type": "Warning", "reason": "ReconfigRefused", "object": "pod/default/p", "message": words}
        story.api("reconfig-manager", "event", **said)
    story.withdrawal("asked", "b", "r2")
    story.at(2.0)


def test_a_refusal_is_reported_as_the_device_is_asked_back():
    story = a_story()
    refusal(story, reported=False)
    assert story.found(98) == [("asked", "asked-back")]
    story = a_story()
    refusal(story, reported=False, reason="")
    assert story.found(98) == []
    story = a_story()
    refusal(story)
    assert story.found(98) == []
    story.withdrawal("asked", request="r3")
    story.withdrawal("refused", request="r3", reason="held")
    story.withdrawal("asked-back", request="r3")  # the same words are no news
    story.at(4.0)
    assert story.found(98) == []


def test_a_refusal_after_a_consent_is_none_of_a_pods():
    story = a_story()
    story.withdrawal("asked")
    story.withdrawal("consented")
    story.withdrawal("consent-ended")
    story.at(1.0)
    story.withdrawal("refused", reason="it is not on this host")
    story.withdrawal("asked-back")
    story.at(3.0)
    assert story.found(98) == []


@pytest.mark.parametrize(("cleared", "named"), [(True, []), (False, [("event", "annotations")])])
def test_a_pod_that_was_held_for_as_long_as_it_may_wants_nothing_any_more(cleared, named):
    story = a_story()
    story.at(121.0)
    if cleared:
        story.note(node="")
    words = "0/2 nodes are available: 1 rejected due to timeout after waiting 2m0s at plugin FalconResources."
    said = {"type": "Warning", "reason": "FailedScheduling", "object": "pod/default/p", "message": words}
    story.api("kubecomp-scheduler", "event", **said)
    assert story.found(79) == named


@pytest.mark.parametrize(
    ("counted", "others", "named"),
    [
        pytest.param(1, [], [("event", "devices")], id="two are free"),
        pytest.param(2, [], [], id="as it says"),
        pytest.param(1, [{"node": "host-2"}], [], id="one is taken"),
        pytest.param(1, [{"name": "w"}], [], id="one is waited for"),
        pytest.param(1, [{"name": "w", "until_s": 5.5}], [], id="one was waited for"),
        pytest.param(1, [{"name": "w", "until_s": 0.5}], [("event", "devices")], id="one was waited for long ago"),
    ],
)
def test_a_pod_is_refused_only_where_its_pools_have_too_few(counted, others, named):
    story = Story()
    for other in others:
        until_s = other.pop("until_s", None)
        story.create(**{"name": "o", **other})
        if "node" not in other:
            story.note(**other)
        if until_s is not None:
            story.at(until_s)
            story.note(other["name"], node="")
    story.at(6.0)
    story.create(asks=3)
    words = f"0/2 nodes are available: Pod p requires 3 GPU but only {counted} GPU in the pool.."
    said = {"type": "Warning", "reason": "FailedScheduling", "object": "pod/default/p", "message": words}
    story.api("kubecomp-scheduler", "event", **said)
    story.at(7.0)
    assert story.found(99) == named


@pytest.mark.parametrize(
    ("shown", "then", "named"),
    [
        pytest.param("1", None, [("allocatable", None)], id="it goes on waiting"),
        pytest.param("0", None, [], id="too few"),
        pytest.param("1", lambda story: story.bind(), [], id="bound"),
        pytest.param("1", lambda story: (story.create("q"), story.bind("q")), [], id="somebody else's"),
    ],
)
def test_a_pod_is_bound_once_its_node_shows_enough(shown, then, named):
    story = a_story()
    story.at(2.0)
    story.api("node/host-1", "allocatable", resource=GPU, old="0", new=shown)
    story.at(3.0)
    if then is not None:
        then(story)
    story.at(6.0)
    assert story.found(35) == []
    story.at(9.0)
    assert story.found(35) == named


@pytest.mark.parametrize(
    ("asked_s", "named"), [(4.0, []), (9.0, []), (10.0, [("asked", "event")]), (14.0, [("asked", "event")])]
)
def test_a_device_is_asked_for_when_something_causes_it(asked_s, named):
    story = a_story()
    story.at(asked_s)
    story.withdrawal("asked")
    assert story.found(88) == named


def test_a_move_goes_on_once_its_device_is_detached():
    story = a_story()
    story.moves("attached", "move-ended", "asked-back")
    story.at(story.t + 4.0)
    story.withdrawal("consented")
    assert story.found(88) == []
    story.at(story.t + 5.0)
    story.withdrawal("consented")
    assert story.found(88) == [("consented", "detached")]


def test_consent_holds_for_its_time_for_its_request_and_until_it_is_taken_back():
    story = a_story()
    story.withdrawal("asked")
    story.take_out()
    story.withdrawal("consented")
    story.at(10.0)
    story.withdrawal("consented")
    story.at(24.0)
    story.begin()
    story.chassis("detach-begun", "a", None)
    story.at(26.0)
    assert story.found(30) == []
    story.chassis("detach-begun", "a", None)
    story.at(27.0)
    assert story.found(30) == [("detach-begun", "consented")]


def test_what_a_node_refused_or_took_back_is_not_detached():
    for event in ("refused", "consent-ended"):
        story = a_story()
        story.withdrawal("asked")
        story.take_out()
        story.withdrawal("consented")
        story.at(1.0)
        story.withdrawal(event, **({"reason": "in use"} if event == "refused" else {}))
        story.at(3.0)
        story.begin()
        story.chassis("detach-begun", "a", None)
        story.at(4.0)
        assert story.found(30) == [("detach-begun", event)]


@pytest.mark.parametrize(("asked", "named"), [(True, [("waiting", "draining")]), (False, [])])
def test_a_removal_that_blocks_was_written_without_a_look(asked, named):
    story = a_story()
    if asked:
        story.withdrawal("asked")
    row = {"gpuid": "0-a", "uuid": "GPU-a", "kind": "GPU", "healthy": True}
    story.journal.write("host", "host/host-2", "draining", **row, on=True)
    story.journal.write("host", "host/host-2", "waiting", **row, what="remove 0-a")
    story.at(1.0)
    assert story.found(31) == named


def test_where_a_fault_lets_events_come_late_nobody_can_say_what_came_first():
    story = a_story()
    fired = {"fault": "f1", "kind": "events-out-of-order", "excuses": {"10": 5.0}}
    story.journal.write("fault", "chassis/A", "fired", **fired)
    story.moves("consented")
    assert story.found(30) == []


@pytest.mark.parametrize(("since_s", "named"), [(30.0, [("detach-begun", "created")]), (0.0, [])])
def test_a_device_is_not_moved_for_a_pod_of_another_uid_that_is_long_there(since_s, named):
    """A name that is taken over at the moment of the detach could not be known."""
    story = a_story()
    story.withdrawal("asked")
    story.take_out()
    story.withdrawal("consented")
    story.begin()
    story.api("pod/default/p", "deleted", uid="p")
    story.at(5.0)
    who = {"uid": "q", "scheduler": "kubecomp-scheduler", "node": "", "phase": "Pending"}
    story.api("pod/default/p", "created", **who, requests={GPU: 1})
    story.at(5.0 + since_s)
    story.chassis("detach-begun", "a", None)
    story.at(40.0)
    assert story.found(36) == named


@pytest.mark.parametrize(("waited_s", "named"), [(2.0, []), (60.0, [("draining", "asked")])])
def test_a_kubelet_that_has_just_begun_excuses_its_node_for_a_moment(waited_s, named):
    story = a_story()
    story.journal.write("component", "kubelet/host-2", "started")
    story.at(0.5)
    story.withdrawal("asked")
    story.at(0.5 + waited_s)
    row = {"gpuid": "0-a", "uuid": "GPU-a", "kind": "GPU", "healthy": True}
    story.journal.write("host", "host/host-2", "draining", **row, on=True)
    assert story.found(88) == named


@pytest.mark.parametrize(("renewed_s", "named"), [(5.0, []), (9.0, [("consented", "detached")])])
@pytest.mark.parametrize("is_free", [True, False])
def test_a_manager_that_begins_anew_attaches_what_it_finds_free(renewed_s, named, is_free):
    story = a_story()
    story.withdrawal("asked")
    story.take_out()
    story.withdrawal("consented")
    story.begin()
    story.chassis("detach-begun", "a", None)
    if is_free:
        story.detach("a")
    story.journal.write("component", "reconfig-manager", "killed")
    story.at(20.0)
    story.journal.write("component", "reconfig-manager", "started")
    story.at(20.0 + renewed_s)
    story.withdrawal("consented")
    assert story.found(88) == (named if is_free else [])


def test_what_an_operator_detaches_is_none_of_it():
    story = a_story()
    story.detach("a")
    story.withdrawal("asked", "b")
    story.journal.write("step", "s", "begun", step=1, do="chassis")
    story.chassis("detach-begun", "b", None)
    story.at(5.0)
    assert [each for each in story.numbers() if each >= 17] == []


def test_nothing_is_withdrawn_that_a_pod_holds():
    story = a_story()
    story.run("host-2", "user", ["a"])
    story.withdrawal("asked")
    story.at(1.0)
    assert story.found(32) == []  # Reconfig-Mgr did not know it yet.
    story.withdrawal("consented")
    story.at(2.0)
    assert story.found(32) == [("consented", "allocated")]


def test_what_has_been_held_for_long_is_not_asked_for():
    story = a_story()
    story.run("host-2", "user", ["a"])
    story.at(61.0)
    story.withdrawal("asked")
    story.at(62.0)
    assert story.found(32) == [("asked", "allocated")]


@pytest.mark.parametrize(("bound_first", "named"), [(True, [("consented", "bound")]), (False, [])])
def test_nothing_is_withdrawn_that_pods_bound_before_will_need(bound_first, named):
    story = a_story()
    story.create("user", asks=2)
    if bound_first:
        story.bind("user", "host-2")
    story.at(1.0)
    story.withdrawal("asked")
    story.at(2.0)
    if not bound_first:
        story.bind("user", "host-2")
    story.withdrawal("consented")
    story.at(3.0)
    assert story.found(32) == named


def test_a_device_is_asked_for_once_at_a_time():
    story = a_story()
    story.withdrawal("asked")
    story.withdrawal("asked-back")
    story.withdrawal("asked", request="s")
    assert story.found(33) == []
    story.withdrawal("asked", request="t", node="host-3")
    assert story.found(33) == [("asked", "asked")]


def test_what_a_pod_holds_is_reported_by_the_next_look():
    story = a_story()
    story.run("host-2", "user", ["a"])
    story.at(5.4)
    story.withdrawal("asked")
    story.at(5.6)
    assert story.found(32) == []
    story.withdrawal("asked", request="s")
    story.at(6.0)
    assert story.found(32) == [("asked", "allocated")]


def test_a_report_may_be_old_where_somebody_was_down():
    story = a_story()
    story.run("host-2", "user", ["a"])
    story.journal.write("component", "device-manager/host-2", "killed")
    story.at(10.0)
    story.journal.write("component", "device-manager/host-2", "started")
    story.withdrawal("asked")
    story.at(11.0)
    assert story.found(32) == []


@pytest.mark.parametrize("answer", ["consented", "refused", ""])
def test_a_node_answers_each_request(answer):
    story = a_story()
    story.withdrawal("asked")
    story.at(1.0)
    if answer:
        story.withdrawal(answer, **({"reason": "held"} if answer == "refused" else {}))
    story.at(20.0)
    story.withdrawal("asked-back")
    assert story.found(38) == ([] if answer else [("asked-back", "asked")])


@pytest.mark.parametrize("why", ["soon", "down", "struck", "not announced"])
def test_a_node_owes_no_answer(why):
    story = a_story()
    if why == "not announced":
        story.announce("host-2", "b")
    story.withdrawal("asked")
    if why == "down":
        story.journal.write("component", "device-manager/host-2", "killed")
    if why == "struck":
        fired = {"fault": "h1", "kind": "layer-slow", "gpuid": "0-a", "excuses": {"4": None}}
        story.journal.write("fault", "host/host-2", "fired", **fired)
    story.at(19.0 if why == "soon" else 25.0)
    story.withdrawal("asked-back")
    assert story.found(38) == []


def test_a_request_that_was_refused_gets_no_consent():
    story = a_story()
    story.withdrawal("asked")
    story.withdrawal("refused", reason="")
    story.withdrawal("consented")
    assert story.found(33) == [("consented", "refused")]


@pytest.mark.parametrize(("announced", "named"), [(True, []), (False, [("asked-back", None)])])
def test_what_is_asked_back_is_announced_again(announced, named):
    story = a_story()
    story.withdrawal("asked")
    story.announce("host-2", "b")
    story.at(10.0)
    story.withdrawal("asked-back")
    story.at(30.0)
    if announced:
        story.announce("host-2", "a", "b")
    story.at(45.0)
    assert story.found(34) == named


def test_no_request_stands_for_ever():
    story = a_story()
    story.withdrawal("asked")
    story.at(299.0)
    story.withdrawal("consented")
    assert story.found(34) == []
    story.at(301.0)
    assert story.found(34) == [("asked", None)]


@pytest.mark.parametrize(("lacks", "bound_s"), [(1, 120), (2, 180), (20, 900)])
def test_permit_ends_with_its_bound(lacks, bound_s):
    story = a_story()
    story.note(lacks=lacks)
    story.at(bound_s + 4.0)
    assert story.found(35) == []
    story.at(bound_s + 6.0)
    assert story.found(35) == [("annotations", None)]


@pytest.mark.parametrize(
    ("config", "waited", "named"),
    [
        ({}, "2m0s", []),
        ({}, "1m0s", [("event", "annotations")]),
        ({"mode": "public", "faults": ("short-permit",), "removal": "surprise"}, "2m0s", [("event", "annotations")]),
    ],
)
def test_a_pod_that_is_given_up_was_held_for_as_long_as_configured(config, waited, named):
    story = a_story(**config)
    story.at(120.0)
    story.note(node="")
    message = f"0/1 nodes are available: 1 rejected due to timeout after waiting {waited} at plugin FalconResources."
    who = {"type": "Warning", "reason": "FailedScheduling", "object": "pod/default/p"}
    story.api("kubecomp-scheduler", "event", **who, message=message)
    assert story.found(35)[-1:] == named


@pytest.mark.parametrize("happens", ["bind", "delete", "clear", "enough"])
def test_nothing_is_detached_for_a_pod_that_does_not_wait_or_lacks_nothing(happens):
    story = a_story()
    match happens:
        case "bind":
            story.bind()
        case "delete":
            story.api("pod/default/p", "deleted", uid="p")
        case "clear":
            story.note(node="")
        case "enough":
            story.announce("host-1", "c")
    story.at(5.0)
    story.moves()
    after = {"bind": "bound", "delete": "deleted", "clear": "annotations", "enough": "devices"}[happens]
    found = ["detach-begun"] if happens == "enough" else ["asked", "detach-begun", "attach-begun"]
    assert story.found(36) == [(event, after) for event in found]


def test_a_device_that_somebody_else_put_elsewhere_does_not_count_where_it_is_still_announced():
    story = a_story()
    story.announce("host-1", "c")
    story.at(5.0)
    row = {"device": "c", "uuid": "GPU-c", "gpuid": "0-c", "old_port": "1", "old_host": "host-1"}
    story.journal.write("chassis", "chassis/A", "edited", **row, port="2", host="host-2", cause="edit")
    story.moves()
    assert story.found(36) == []


def test_a_device_is_asked_for_as_long_as_a_pod_waits():
    story = a_story()
    story.create("q")
    story.note("q")
    story.api("pod/default/p", "deleted", uid="p")
    story.at(5.0)
    story.withdrawal("asked")
    story.at(6.0)
    assert story.found(36) == []
    story.bind("q")
    story.at(6.4)
    story.withdrawal("asked", "b")
    story.at(8.0)
    assert story.found(36) == []  # Reconfig-Mgr did not know it yet.
    story.withdrawal("asked", "b", request="s")
    story.at(9.0)
    assert story.found(36) == [("asked", "bound")]


@pytest.mark.parametrize(("gone_first", "named"), [(True, [("attach-begun", "deleted")]), (False, [])])
def test_a_device_that_came_off_for_nobody_goes_back_first(gone_first, named):
    story = a_story()
    story.withdrawal("asked")
    story.take_out()
    story.withdrawal("consented")
    story.begin()
    story.chassis("detach-begun", "a", None)
    if gone_first:
        story.api("pod/default/p", "deleted", uid="p")
    story.at(5.0)
    story.chassis("detached", "a", None)
    if not gone_first:
        story.api("pod/default/p", "deleted", uid="p")
    story.at(6.0)
    story.chassis("attach-begun", "a", "1")
    story.at(7.0)
    assert story.found(36) == named


def test_where_it_was_may_have_no_room_for_it():
    story = a_story()
    story.begin()
    story.api("pod/default/p", "deleted", uid="p")
    story.at(5.0)
    story.chassis("detached", "a", None)
    story.chassis("attach-begun", "a", "2")
    story.chassis("attach-begun", "a", "1")
    story.at(7.0)
    assert story.found(36) == []


def test_the_event_is_about_a_pod_that_is_annotated():
    story = Story()
    story.create()
    who = {"type": "Normal", "reason": "Reconfig", "object": "pod/default/p", "message": "Pod p needs reconfiguration"}
    story.api("kubecomp-scheduler", "event", **who)
    story.at(5.0)
    assert story.found(36) == [("event", "created")]


def test_a_device_goes_where_its_move_was_written_to():
    story = a_story()
    story.begin()
    story.chassis("attach-begun", "a", "3")
    story.at(1.0)
    assert story.found(37) == [("attach-begun", "move-begun")]


@pytest.mark.parametrize(
    ("fault", "number", "left_out"),
    [
        ("unasked-move", 30, ("consented",)),
        ("no-journal", 37, ("move-begun", "move-ended")),
        ("no-journal", 31, ("taken out",)),
    ],
)
def test_what_is_published_so_is_known_with_its_source(fault, number, left_out):
    story = a_story(mode="public", faults=(fault,), removal="surprise", partial=True)
    story.moves(*left_out)
    assert number not in story.numbers()
    [known] = [each for each in story.judge.known if each.invariant == number]
    assert "contract" in known.known


def test_pods_that_ended_are_forgotten_in_time():
    story = Story()
    for number in range(ENDED_KEPT + 10):
        story.create(f"pod-{number}")
        story.api(f"pod/default/pod-{number}", "deleted", uid=f"pod-{number}")
    known = Board()
    for line in story.journal.lines():
        known.take(line)
    assert len(known.pods) == ENDED_KEPT


def board(name, data):
    return {"metadata": {"name": name, "namespace": "kubecomp"}, "data": data}


def news(old, new):
    return [(actor, event, fields.get("request")) for actor, event, fields in board_news(old, new)]


def test_requests_are_lines_and_their_renewals_are_none():
    def asked(request, until_s):
        return board("withdraw-host-2", withdraw_data({"0-a": WithdrawRequest(request, until_s)}))

    gone = ("withdrawal/0-a", "asked-back", "r")
    assert news(None, asked("r", 1.0)) == [("withdrawal/0-a", "asked", "r")]
    assert news(asked("r", 1.0), asked("r", 2.0)) == []
    assert news(asked("r", 1.0), asked("s", 2.0)) == [gone, ("withdrawal/0-a", "asked", "s")]
    assert news(asked("r", 1.0), None) == [gone]


def test_answers_are_lines_and_heartbeats_are_none():
    def says(heartbeat_s, time_s=None, **more):
        consents = {} if time_s is None else {"0-a": Consent("r", time_s)}
        return board("node-host-2", report_data(NodeReport(heartbeat_s=heartbeat_s, consents=consents, **more)))

    consented = ("withdrawal/0-a", "consented", "r")
    assert news(says(1.0), says(2.0)) == []
    assert news(says(1.0), says(2.0, 1.0)) == news(says(1.0, 1.0), says(2.0, 2.0)) == [consented]
    assert news(says(1.0, 1.0), says(2.0)) == [("withdrawal/0-a", "consent-ended", "r")]
    refused = says(2.0, refused={"0-a": "r"}, reasons={"0-a": "in use"})
    [(_, event, fields)] = board_news(says(1.0), refused)
    assert (event, fields["reason"]) == ("refused", "in use")


def test_moves_are_lines():
    intent = Intent("pool-0", "r", "0-a", "A", "a", "2", "host-2", "1", "host-1", "default/p", "p")
    written = board("reconfig-journal", {"0-a": intent_data(intent)})
    assert news(None, written) == [("move/0-a", "move-begun", "r")]
    assert news(written, board("reconfig-journal", {})) == [("move/0-a", "move-ended", "r")]


def test_config_maps_of_others_are_no_news():
    assert news(None, board("kube-root-ca.crt", {"ca.crt": "x"})) == []
    assert news(None, board("node-local-dns", {"Corefile": "x"})) == []
    assert news(None, board("withdraw-me", {"requests": "nothing that is JSON"})) == []


def turned_back(story, *before):
    """The move of device a, which goes back to port 2 after these steps."""
    story.begin()
    story.detach("a")
    story.at(1.0)
    for step in before:
        step()
    story.chassis("attach-begun", "a", "2")
    story.at(2.0)
    return story.found(37)


def test_a_device_is_turned_back_once_its_target_was_tried():
    story = a_story()
    assert turned_back(story) == [("attach-begun", "move-begun")]
    story = a_story()
    assert turned_back(story, lambda: story.chassis("attach-begun", "a", "1")) == []


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(Story.bind, id="bound"),
        pytest.param(lambda story: story.note(node=""), id="not annotated any more"),
        pytest.param(lambda story: story.api("pod/default/p", "deleted", uid="p"), id="gone"),
        pytest.param(lambda story: story.announce("host-1", "c"), id="enough"),
        pytest.param(lambda story: story.journal.write("component", "reconfig-manager", "started"), id="a new one"),
    ],
)
def test_a_device_that_nobody_may_want_any_more_is_turned_back(happens):
    story = a_story()
    assert turned_back(story, lambda: happens(story)) == []


@pytest.mark.parametrize("happens", ["", "attached", "edited", "link-down"])
def test_a_move_is_over_once_its_device_is_on_a_port(happens):
    story = a_story()
    story.begin()
    story.detach("a")
    if happens:
        story.chassis(happens, "a", None if happens == "link-down" else "1")
    story.end_move()
    found = [named for named in story.found(37) if named[0] == "move-ended"]
    assert found == ([] if happens else [("move-ended", "detached")])


def test_a_move_that_never_began_to_change_anything_is_over_at_any_time():
    story = a_story()
    story.begin()
    story.end_move()
    assert story.found(37) == []


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        pytest.param("a", "does not announce: 0-b", id="one is missing"),
        pytest.param("abz", "announces without having it: 0-z", id="one of another node"),
    ],
)
def test_a_list_that_is_not_what_the_node_has_is_named(listed, says):
    story = Story({"a": "2", "b": "2", "z": "1"})
    story.judge.violations.clear()
    story.at(60.0)
    line = story.announce("host-2", *listed)
    found = [each for each in story.judge.violations if each.invariant == 39]
    assert [each.first for each in found] == [line]
    assert says in found[0].what


def test_a_list_without_what_is_asked_back_or_has_just_changed_is_in_order():
    story = Story()
    story.at(60.0)
    story.withdrawal("asked")
    story.announce("host-2", "b")
    story.withdrawal("asked-back")
    story.detach("b")
    story.announce("host-2", "a", "b")
    assert 39 not in story.numbers()
