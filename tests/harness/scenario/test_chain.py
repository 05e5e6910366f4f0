"""What a failure names: along what something waits for, to the line after which nothing more was done about it."""

from mews.harness.journal import Line
from mews.harness.scenario.chain import chain_of, moved, stop_of

POD, OTHER = "pod/default/p", "pod/default/q"


def written(*said):
    """Lines of a journal: layer, actor, event, fields."""
    return [Line(number, float(number), *one[:3], one[3]) for number, one in enumerate(said)]


def numbers(lines, *about):
    return [line.number for line in chain_of(lines, about)]


ROW = {"uuid": "GPU-a", "gpuid": "0-a"}
TABLE = ("chassis", "chassis/A", "table", {"devices": {"a": ROW}})
MADE = ("api", POD, "created", {"uid": "p", "node": ""})
TOLD = ("api", POD, "annotations", {"uid": "p", "annotations": {"dst_node": "host-1"}})
ASKED = ("api", "withdrawal/0-a", "asked", {"node": "host-2", "gpuid": "0-a"})
BEGUN = ("chassis", "chassis/A", "detach-begun", {**ROW, "operation": 1})
DETACHED = ("chassis", "chassis/A", "detached", ROW)
BOUND = ("api", POD, "bound", {"uid": "p", "node": "host-1"})


def test_a_pod_that_waits_for_a_device_leads_to_the_last_word_about_that_device():
    lines = written(TABLE, MADE, TOLD, ASKED, BEGUN, DETACHED, ("api", OTHER, "created", {"node": ""}))
    assert numbers(lines, POD) == [2, 3, 5]
    assert numbers(lines[:4], POD) == [2, 3]
    assert numbers(lines[:3], POD) == [2]


def test_who_hands_out_the_device_has_the_last_word_and_lists_that_follow_have_not():
    holder = ("api", "gpushare/host-2", "gpus", {"gpus": {"GPU-a": 16}})
    listed = ("kubelet", "kubelet/host-2", "devices", {"resource": "x", "healthy": ["0-a"]})
    lines = written(TABLE, MADE, TOLD, ASKED, holder, listed)
    assert numbers(lines, POD) == [2, 3, 4]


def test_a_chain_stops_at_the_first_refusal():
    refused = ("api", "withdrawal/0-a", "refused", {"node": "host-2", "gpuid": "0-a", "reason": "held"})
    back = ("api", "withdrawal/0-a", "asked-back", {"node": "host-2", "gpuid": "0-a"})
    chain = chain_of(written(TABLE, MADE, TOLD, ASKED, refused, back), [POD])
    assert ([line.number for line in chain], stop_of(chain).number) == ([2, 4, 5], 4)
    assert stop_of(chain_of(written(TABLE, MADE, TOLD, ASKED), [POD])).number == 3
    assert stop_of(()) is None


def test_a_pod_that_has_a_node_leads_to_its_kubelet():
    kubelet = ("component", "kubelet/host-1", "killed", {})
    assert numbers(written(MADE, BOUND, kubelet), POD) == [1, 2]
    assert numbers(written(MADE, BOUND, kubelet, ("component", "kubelet/host-1", "started", {})), POD) == [1]
    assert numbers(written(MADE, TOLD, ASKED, BOUND), POD) == [3]


def test_what_tells_of_the_run_is_no_link_and_neither_is_another_thing():
    step = ("step", "s", "failed", {"object": POD})
    assert numbers(written(MADE, step), POD) == [0]
    assert numbers(written(MADE, step), OTHER) == []
    assert numbers(written(MADE, step), OTHER, POD) == [0]


def test_a_move_is_set_off_by_what_told_a_pod_to_wait_for_it():
    assert moved(written(MADE, TOLD, ASKED, BEGUN, DETACHED), "0-a").number == 1
    assert moved(written(MADE, ASKED, BEGUN), "0-a").number == 1
    assert moved(written(MADE, BEGUN), "0-a").number == 1
    begins = ("api", "move/0-a", "move-begun", {"gpuid": "0-a", "pod": "default/q"})
    other = ("api", OTHER, "annotations", {"annotations": {"dst_node": "host-1"}})
    assert moved(written(other, TOLD, begins, BEGUN), "0-a").number == 0
    assert moved(written(MADE), "0-a") is None


def test_a_consent_that_is_renewed_is_no_news():
    consent = ("api", "withdrawal/0-a", "consented", {"node": "host-2", "gpuid": "0-a", "request": "r"})
    lines = written(TABLE, MADE, TOLD, ASKED, consent, BEGUN, consent, consent)
    assert numbers(lines, POD) == [2, 4, 5]
    assert numbers(lines[:5], POD) == [2, 4]


def test_a_chain_stops_at_the_first_complaint_of_what_runs_on_a_node():
    def complaint(pod, actor="kubelet/host-1"):
        return ("api", actor, "event", {"type": "Warning", "reason": "Failed", "object": pod, "message": ""})

    job = ("api", "job/default/j", "created", {})
    of_job, of_other = complaint("pod/default/j-0"), complaint("pod/default/jj-0")
    lines = written(MADE, BOUND, complaint(OTHER), complaint(POD), complaint(POD), job, of_other, of_job)
    assert stop_of(chain_of(lines, [POD])).number == 3
    assert stop_of(chain_of(lines, ["job/default/j"])).number == 7
    node, ready = "node/host-1", ("api", "node/host-1", "condition", {"type": "Ready"})
    assert stop_of(chain_of(written(complaint(node, "plugin/host-1"), ready), [node])).number == 0
    assert stop_of(chain_of(written(complaint(node, "controller"), ready), [node])).number == 1
