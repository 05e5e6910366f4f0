from msgspec.structs import replace

from mews.systems.pooldra import policy
from mews.systems.pooldra.claims import Use
from mews.systems.pooldra.names import ATTACH_FAILED, ATTACHED, HandOver
from mews.systems.pooldra.policy import Act, Decision, Memory, NodeView, PoolLimits, Situation, Slot
from mews.systems.pooldra.records import PoolNodeReport, PoolRefusal

UUID = "GPU-A"
LIMITS = PoolLimits(keep_s=10, appear_s=45, tries=3)
FREE = Slot("1", UUID)
ON_A = Slot("1", UUID, "10", "a")
ELSEWHERE = Slot("1", UUID, "99")
USE = Use("default/c", "u1", "chassis-0", "gpu-a", "a")
SHOWN = NodeView(report=PoolNodeReport(shown={UUID: "gpu-0"}))
ASKED = NodeView(report=PoolNodeReport(shown={UUID: "gpu-0"}), asked={UUID: "r1"})


def at(slot, wanted=None, user="", hand_over=HandOver.IN_PLACE, **nodes):
    views = {"a": NodeView(), "b": NodeView(), **nodes}
    return Situation(slot, wanted, user, views, ("a", "b"), hand_over)


def decided(situation, memory=None, now_s=100.0):
    memory = memory or Memory()
    policy.remember(memory, situation, now_s)
    return policy.decide(situation, memory, LIMITS, now_s)


def test_a_free_device_is_attached_to_the_node_of_the_claim_that_was_given_it():
    assert decided(at(FREE)) == policy.NOTHING
    assert decided(at(FREE, USE)) == Decision(Act.ATTACH, "a", USE)


def test_a_device_waits_between_two_tries_and_fails_after_the_last():
    assert decided(at(FREE, USE), Memory(tries=1, retry_at_s=101)) == policy.NOTHING
    assert decided(at(FREE, USE), Memory(tries=2, retry_at_s=100)).act is Act.ATTACH
    failed = decided(at(FREE, USE), Memory(tries=3))
    assert (failed.act, failed.reason) == (Act.FAIL, policy.ATTACH_FAILED)


def test_tries_count_for_one_claim_only():
    memory = Memory(tries=3)
    policy.remember(memory, at(FREE), 1.0)
    assert memory.tries == 0


def test_a_claim_fails_whose_device_cannot_come_to_its_node():
    lost = NodeView(is_ready=False)
    assert decided(at(FREE, USE, a=lost)).reason == policy.NODE_NOT_READY
    assert decided(at(FREE, replace(USE, node="c"))).reason == policy.NOT_CABLED
    assert decided(at(ELSEWHERE, USE)).reason == policy.ELSEWHERE
    assert decided(at(ELSEWHERE)) == policy.NOTHING


def test_a_claim_fails_whose_device_another_one_was_given_before():
    second = replace(USE, claim="default/d", uid="u2")
    (failed,) = policy.taken([USE, second], [at(FREE, USE)])
    assert (failed.act, failed.use, failed.reason) == (Act.FAIL, second, policy.LOST)
    assert failed.message == "claim default/c has it"
    for spared in (
        replace(second, true=frozenset({ATTACH_FAILED})),
        replace(second, true=frozenset({ATTACHED})),
        replace(second, admin=True),
    ):
        assert policy.taken([USE, spared], [at(FREE, USE)]) == []
    assert policy.taken([second], [at(FREE)]) == []


def test_a_device_is_ready_once_its_host_shows_it():
    assert decided(at(ON_A, USE)) == policy.NOTHING
    assert decided(at(ON_A, USE, a=SHOWN)).act is Act.READY
    elsewhere = NodeView(report=PoolNodeReport(shown={"GPU-B": "gpu-0"}))
    assert decided(at(ON_A, USE, a=elsewhere)) == policy.NOTHING


def test_a_device_that_its_host_does_not_show_in_time_fails_its_claim():
    memory = Memory(on_port_since_s=55.5)
    assert decided(at(ON_A, USE), memory) == policy.NOTHING
    assert decided(at(ON_A, USE), memory, 100.5).reason == policy.NOT_SHOWN


def test_a_pod_that_was_bound_keeps_its_device_while_the_host_does_not_show_it():
    assert decided(at(ON_A, replace(USE, true=frozenset({ATTACHED}))), Memory(on_port_since_s=0)) == policy.NOTHING


def test_a_device_that_another_claim_has_taken_from_the_nodes_slice_is_lost():
    lost = decided(at(ON_A, USE, "default/thief", HandOver.REALLOCATE, a=SHOWN))
    assert (lost.act, lost.reason) == (Act.FAIL, policy.LOST)


def test_a_device_that_no_claim_uses_is_asked_for_after_a_while():
    memory = Memory(idle_since_s=90.5)
    assert decided(at(ON_A, a=SHOWN), memory) == policy.NOTHING
    assert decided(at(ON_A, a=SHOWN), memory, 100.5) == Decision(Act.ASK, "a")
    assert decided(at(ON_A, user="default/c", a=SHOWN), memory, 200) == policy.NOTHING
    assert memory.idle_since_s is None


def test_a_device_that_another_node_waits_for_or_that_was_not_shown_is_asked_for_immediately():
    assert decided(at(ON_A, replace(USE, node="b"), a=SHOWN)) == Decision(Act.ASK, "a")
    assert decided(at(ON_A), Memory(is_suspect=True)) == Decision(Act.ASK, "a")
    assert decided(at(ON_A), Memory(is_suspect=True, retry_at_s=101)) == policy.NOTHING


def test_a_device_is_detached_once_its_host_has_let_go_of_it_whoever_wants_it_by_then():
    off = NodeView(report=PoolNodeReport(off={UUID: "r1"}), asked={UUID: "r1"})
    assert decided(at(ON_A, a=ASKED)) == policy.NOTHING
    assert decided(at(ON_A, a=off)) == Decision(Act.DETACH, "a")
    assert decided(at(ON_A, USE, a=off)) == Decision(Act.DETACH, "a")
    assert decided(at(ON_A, a=replace(off, asked={UUID: "r2"}))) == policy.NOTHING


def test_a_refusal_ends_a_request():
    kept = NodeView(report=PoolNodeReport(refused={UUID: PoolRefusal("r1", "in use")}), asked={UUID: "r1"})
    assert decided(at(ON_A, a=kept)) == Decision(Act.WITHDRAW, "a", reason="in use")
    assert decided(at(ON_A, a=replace(kept, asked={UUID: "r2"}))) == policy.NOTHING


def test_a_request_for_a_device_that_has_left_is_withdrawn_before_it_is_attached_again():
    assert decided(at(FREE, USE, b=ASKED)) == Decision(Act.WITHDRAW, "b")


def test_a_node_that_is_lost_is_not_waited_for():
    lost = NodeView(is_ready=False, is_lost=True)
    assert decided(at(ON_A, a=lost), Memory(is_suspect=True)) == Decision(Act.DETACH, "a", forced=True)
    assert decided(at(ON_A, a=replace(lost, asked={UUID: "r1"}))) == Decision(Act.DETACH, "a", forced=True)
    assert decided(at(ON_A, USE, a=lost)).act is Act.NOTHING


def test_a_claim_whose_device_left_the_chassis_fails_unless_its_pod_was_bound():
    other = Slot("2", "GPU-B")
    assert policy.gone([USE], [FREE, other]) == []
    assert [each.reason for each in policy.gone([USE], [other])] == [policy.GONE]
    told = [replace(USE, true=frozenset({each})) for each in (ATTACHED, ATTACH_FAILED)]
    assert policy.gone(told, [other]) == []


def test_a_claim_is_unready_until_the_last_of_its_devices_has_arrived():
    ready, moving = Decision(Act.READY, "a", USE), Decision(Act.ATTACH, "a", USE)
    assert policy.unready([(at(ON_A, USE), ready), (at(FREE), policy.NOTHING)]) == set()
    assert policy.unready([(at(ON_A, USE), ready), (at(FREE, USE), moving)]) == {"u1"}
    assert policy.unready([(at(ON_A, USE), ready), (at(FREE, USE), policy.NOTHING)]) == {"u1"}


def offered(situation, memory=None):
    memory = memory or Memory()
    return policy.is_offered(situation, memory, 100), policy.is_on_node(situation, memory, 100)


def test_which_slice_has_a_device_depends_on_the_hand_over():
    for hand_over in HandOver:
        assert offered(at(FREE, hand_over=hand_over)) == (True, False)
        assert offered(at(FREE, hand_over=hand_over), Memory(bad_until_s=101)) == (False, False)
        assert offered(at(ELSEWHERE, hand_over=hand_over)) == (False, False)
    assert offered(at(ON_A, a=SHOWN, hand_over=HandOver.IN_PLACE)) == (True, False)
    assert offered(at(ON_A, a=SHOWN, hand_over=HandOver.REALLOCATE)) == (False, False)
    assert offered(at(ON_A, a=SHOWN, hand_over=HandOver.MOVE)) == (False, True)


def test_a_device_that_moves_is_in_one_slice_from_its_attach_on_and_in_none_while_it_is_asked_for():
    assert offered(at(ON_A, USE, hand_over=HandOver.MOVE)) == (True, False)
    assert offered(at(ON_A, USE, hand_over=HandOver.MOVE, a=SHOWN)) == (False, True)
    assert offered(at(ON_A, hand_over=HandOver.MOVE)) == (False, False)
    assert offered(at(ON_A, hand_over=HandOver.MOVE, a=ASKED)) == (False, False)


def test_a_device_on_a_lost_node_or_without_a_uuid_is_not_offered():
    lost = NodeView(is_ready=False, is_lost=True)
    assert offered(at(ON_A, a=lost)) == (False, False)
    assert offered(at(Slot("1", ""))) == (False, False)


def test_what_an_earlier_incarnation_took_out_of_the_pool_may_be_moving_still():
    """Its attach may take effect after the restart, and the node's slice has the device then."""
    free, memory = at(FREE, hand_over=HandOver.REALLOCATE), Memory()
    policy.recall(memory, free, set(), 160.0)
    assert not policy.is_offered(free, memory, 159.0)
    assert policy.is_offered(free, memory, 160.0)
    policy.remember(memory, at(ON_A, hand_over=HandOver.REALLOCATE), 120.0)
    assert policy.is_offered(free, memory, 121.0)  # it has arrived and has gone back since


def test_what_was_offered_before_a_restart_or_never_stays_offered():
    free = at(FREE, hand_over=HandOver.REALLOCATE)
    for offered in ({FREE.name}, None):
        memory = Memory()
        policy.recall(memory, free, offered, 160.0)
        assert policy.is_offered(free, memory, 100.0)


DIVIDED = NodeView(report=PoolNodeReport(divided=(UUID,)))


def test_a_device_in_mig_mode_fails_its_claim_at_once_and_is_not_offered():
    assert decided(at(ON_A, USE, a=DIVIDED)) == Decision(
        Act.FAIL, "a", USE, policy.DIVIDED, "it is in MIG mode on node a"
    )
    running = replace(USE, true=frozenset({ATTACHED}))
    assert decided(at(ON_A, running, a=DIVIDED)) == policy.NOTHING
    for hand_over in HandOver:
        divided = at(ON_A, hand_over=hand_over, a=DIVIDED)
        assert not policy.is_offered(divided, Memory(), 1.0) and not policy.is_on_node(divided, Memory(), 1.0)
    assert policy.is_offered(at(ON_A, a=SHOWN), Memory(), 1.0)
