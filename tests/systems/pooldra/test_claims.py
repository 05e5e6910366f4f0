import pytest

from mews.systems.pooldra.claims import ClaimCondition, Use, kept_for, uses_of, with_condition
from mews.systems.pooldra.names import ATTACH_FAILED, ATTACHED


def claim(name="c", *, device="gpu-a", node="a", since="2026-01-01T00:00:00Z", devices=(), **more):
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    result = {"request": "r", "driver": "gpu.nvidia.com", "pool": "chassis-0", "device": device, **more}
    allocation = {
        "allocationTimestamp": since,
        "devices": {"results": [result, {**result, "driver": "other.example.com"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": metadata, "status": {"allocation": allocation, "devices": list(devices)}}


def told(condition, status="True", driver="gpu.nvidia.com"):
    return {
        "driver": driver,
        "pool": "chassis-0",
        "device": "gpu-a",
        "conditions": [{"type": condition, "status": status}],
    }


def test_uses_are_those_of_our_driver_the_earliest_first_and_an_administrators_last():
    found = uses_of(
        [
            claim("late", since="2026-01-01T00:00:02Z"),
            claim("admin", since="2026-01-01T00:00:00Z", adminAccess=True),
            claim("early", since="2026-01-01T00:00:01Z", devices=[told(ATTACHED), told("x", driver="other")]),
            {"metadata": {"name": "n", "namespace": "d", "uid": "u"}},
        ]
    )
    assert [use.claim for use in found] == ["default/early", "default/late", "default/admin"]
    assert [use.true for use in found] == [{ATTACHED}, frozenset(), frozenset()]
    assert found[0].node == "a"


def test_a_claim_has_failed_once_a_failure_condition_is_true():
    (failed,) = uses_of([claim(devices=[told(ATTACH_FAILED)])])
    (open_,) = uses_of([claim(devices=[told(ATTACH_FAILED, "False")])])
    assert (failed.has_failed, open_.has_failed) == (True, False)


def verdict(found):
    (use,) = uses_of([found])
    return ClaimCondition(use, ATTACHED, "Attached", "on node a")


def test_a_condition_is_added_beside_those_of_others_and_once():
    other = told("x", driver="other.example.com")
    found = claim(devices=[other, told(ATTACHED, "False")])
    devices = with_condition(found, verdict(found), "2026-01-01T00:00:09Z")
    assert devices[0] == other
    (entry,) = devices[1:]
    assert [(each["type"], each["status"], each["reason"]) for each in entry["conditions"]] == [
        (ATTACHED, "True", "Attached")
    ]
    again = {**found, "status": {**found["status"], "devices": devices}}
    assert with_condition(again, verdict(again), "later") is None


def test_a_claim_that_was_replaced_or_allocated_anew_meanwhile_is_told_nothing():
    before = verdict(claim())
    assert with_condition({**claim(), "metadata": {**claim()["metadata"], "uid": "u2"}}, before, "t") is None
    assert with_condition(claim(since="2026-01-01T00:00:05Z"), before, "t") is None
    assert with_condition(claim(device="gpu-b"), before, "t") is None
    assert with_condition(claim(node="b"), before, "t") is None
    assert isinstance(before.use, Use)


def spec(uuid, claim="u1"):
    device = {"name": "d", "containerEdits": {"env": [f"NVIDIA_VISIBLE_DEVICES={uuid}"]}}
    return {"annotations": {"claim": claim}, "devices": [{"name": "bare"}, device]}


def test_a_node_keeps_a_device_with_which_a_claim_is_prepared():
    assert kept_for("GPU-A", "a", "gpu-0", [spec("GPU-B"), spec("GPU-A")], []) == "it is prepared for claim u1"
    assert kept_for("GPU-A", "a", "gpu-0", [spec("GPU-B")], []) == ""


@pytest.mark.parametrize(
    ("pool", "device", "node", "keeps"),
    [
        ("chassis-0", "gpu-a", "a", True),
        ("chassis-0", "gpu-a", "b", False),
        ("chassis-0", "gpu-b", "a", False),
        ("a", "gpu-0", "a", True),
        ("a", "gpu-1", "a", False),
        ("b", "gpu-0", "b", False),
    ],
)
def test_a_node_keeps_a_device_that_a_claim_is_given_there(pool, device, node, keeps):
    use = Use("default/c", "u1", pool, device, node)
    assert kept_for("GPU-A", "a", "gpu-0", [], [use]) == ("claim default/c has it" if keeps else "")
    failed = Use("default/c", "u1", pool, device, node, frozenset({ATTACH_FAILED}))
    assert kept_for("GPU-A", "a", "gpu-0", [], [failed]) == ""
