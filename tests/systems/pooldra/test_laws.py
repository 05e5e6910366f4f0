"""The laws of the pool: streams that they must report, and streams that they must not."""

from __future__ import annotations

import pytest

from mews.kube.system.journal import Line
from mews.systems.pooldra.config import PoolChassis, PoolDraConfig
from mews.systems.pooldra.laws import laws
from mews.systems.pooldra.names import HandOver

CONFIG = PoolDraConfig(chassis=(PoolChassis("A", 0, {"a": "1", "b": "2"}),), keep_s=10.0)
GPU = "GPU-A"
POOL = ("api", "slice/p", "gpus-offered", {"pool": "chassis-0", "node": "", "gpus": {"gpu-a": GPU}})
NODE = ("api", "slice/n", "gpus-offered", {"pool": "a", "node": "a", "gpus": {"gpu-0": GPU}})
SHOWN = ("host", "host/a", "nvml-visible", {"uuid": GPU})
LET_GO = ("api", "node/a", "gpu-let-go", {"gpu": GPU, "request": "r"})
DETACH = ("chassis", "chassis/A", "detach-begun", {"uuid": GPU, "host": None})
DETACHED = ("chassis", "chassis/A", "detached", {"uuid": GPU, "host": None})
BOUND = ("api", "pod/default/p", "bound", {"node": "a"})


def attached(host="a"):
    return ("chassis", "chassis/A", "attached", {"uuid": GPU, "host": host})


def allocated(claim="c", device="chassis-0/gpu-a"):
    fields = {"claim": f"default/{claim}", "uid": claim, "devices": [], "alone": [f"gpu.nvidia.com/{device}"]}
    return ("api", f"claim/default/{claim}", "claim-allocated", fields)


def reserved(claim="c"):
    return (
        "api",
        f"claim/default/{claim}",
        "claim-reserved",
        {"claim": f"default/{claim}", "uid": claim, "pods": ["p"]},
    )


def freed(claim="c"):
    return ("api", f"claim/default/{claim}", "claim-freed", {"claim": f"default/{claim}", "uid": claim})


def prepared(claim="c", device="chassis-0/gpu-a", event="claim-prepared"):
    fields = {"claim": f"default/{claim}", "uid": claim, "driver": "gpu.nvidia.com", "alone": [device]}
    return ("kubelet", "kubelet/a", event, fields)


class _State:
    def bound_s(self, name):
        return {"returned_s": 60.0, "lag_s": 0.0}[name]

    def clock_from(self, invariant, since, device=None):
        return since


def found(number, said, hand_over=HandOver.IN_PLACE, at_s=None):
    """The numbers of the lines that the law reports first, a line a second; or what it says at that time."""
    config = PoolDraConfig(chassis=CONFIG.chassis, keep_s=10.0, hand_over=hand_over)
    law = next(law for law in laws(config) if law.number == number)
    lines = [Line(n, float(n), *each) for n, each in enumerate(said)]
    seen = [breach.first.number for line in lines for breach in law.on_line(line, _State())]
    return seen if at_s is None else [breach.what for breach in law.on_time(at_s, _State())]


def test_a_pod_is_bound_once_its_host_shows_the_device():
    good = [POOL, allocated(), reserved(), attached(), SHOWN, BOUND]
    assert found(90, good) == []
    assert found(90, [each for each in good if each != SHOWN]) == [4]
    assert found(90, [*good[:3], attached("b"), SHOWN, BOUND]) == [5]
    assert found(90, [*good[:5], DETACHED, attached(), BOUND]) == [7]
    assert found(90, [POOL, allocated(), BOUND]) == []


def test_a_claim_that_is_to_be_allocated_anew_has_no_device_of_the_pool_when_its_pod_is_bound():
    pool = [POOL, allocated(), reserved(), attached(), SHOWN]
    assert found(90, [*pool, BOUND], HandOver.REALLOCATE) == [5]
    assert found(90, [*pool, NODE, freed(), allocated(device="a/gpu-0"), reserved(), BOUND], HandOver.REALLOCATE) == []


def test_a_device_is_detached_once_its_host_has_let_go_of_it():
    assert found(91, [attached(), LET_GO, DETACH]) == []
    assert found(91, [attached(), DETACH]) == [1]
    assert found(91, [attached(), LET_GO, DETACHED, attached(), DETACH]) == [4]


@pytest.mark.parametrize("lost", [("host", "host/a", "powered-off", {}), ("component", "kubelet/a", "killed", {})])
def test_a_host_that_is_lost_is_not_asked(lost):
    assert found(91, [attached(), lost, DETACH]) == []
    back = (lost[0], lost[1], "powered-on" if lost[0] == "host" else "started", {})
    assert found(91, [attached(), lost, back, DETACH]) == [3]


def test_no_device_is_detached_from_a_claim_that_is_prepared_with_it():
    held = [POOL, allocated(), attached(), prepared(), LET_GO, DETACH]
    assert found(91, held) == [5]
    assert found(91, [*held[:4], prepared(event="claim-unprepared"), LET_GO, DETACH]) == []
    assert found(91, [*held[:4], freed(), LET_GO, DETACH]) == []


def test_no_device_is_prepared_for_two_claims_under_two_names():
    both = [POOL, NODE, prepared("c"), prepared("d", "a/gpu-0")]
    assert found(92, both, HandOver.REALLOCATE) == [3]
    assert found(92, [*both[:3], prepared("c", event="claim-unprepared"), both[3]], HandOver.REALLOCATE) == []


def test_no_device_is_allocated_to_two_claims_where_claims_keep_theirs():
    both = [POOL, NODE, allocated("c"), allocated("d", "a/gpu-0")]
    assert found(92, both) == [3]
    assert found(92, both, HandOver.REALLOCATE) == []
    assert found(92, [*both[:3], freed("c"), both[3]]) == []


def test_no_free_device_is_in_the_slices_of_two_pools():
    assert found(93, [POOL, NODE]) == [1]
    assert found(93, [POOL, allocated(), NODE]) == []
    assert found(93, [POOL, (*POOL[:3], {**POOL[3], "gpus": {}}), NODE]) == []
    moved = ("api", "slice/m", "gpus-offered", {"pool": "chassis-0", "node": "a", "gpus": {"gpu-a": GPU}})
    assert found(93, [POOL, moved]) == []


def test_a_claim_has_the_device_that_it_is_prepared_with_even_if_another_had_the_name_before():
    other = ("api", "slice/n", "gpus-offered", {"pool": "a", "node": "a", "gpus": {"gpu-0": "GPU-B"}})
    renamed = [other, allocated("c", "a/gpu-0"), attached(), NODE, prepared("c", "a/gpu-0")]
    assert found(94, renamed, HandOver.REALLOCATE, at_s=900) == []
    late = ["GPU-A is on a, and no claim has had it for 71 s"]
    assert found(94, [*renamed, freed()], HandOver.REALLOCATE, at_s=76) == late
    assert found(94, [*renamed[:4], freed()], HandOver.REALLOCATE, at_s=900) != []


def test_a_device_that_no_claim_has_comes_back_in_time():
    idle = [POOL, allocated(), attached(), freed()]
    assert found(94, idle, at_s=73) == []
    assert found(94, idle, at_s=74) == ["GPU-A is on a, and no claim has had it for 71 s"]
    assert found(94, idle[:3], at_s=900) == []
    assert found(94, [*idle, DETACHED], at_s=900) == []
    down, up = (("chassis", "chassis/A", event, {"uuid": GPU, "host": "a"}) for event in ("link-down", "link-up"))
    assert found(94, [*idle, down], at_s=900) == []
    assert found(94, [*idle, down, up], at_s=75) == []
    assert found(94, [*idle, down, up], at_s=76) == ["GPU-A is on a, and no claim has had it for 71 s"]
    assert found(94, [*idle, *[POOL] * 6, ("component", "pool-driver", "started", {})], at_s=79) == []


def test_a_chassis_that_has_lost_a_uuid_does_not_hide_whose_device_it_detaches():
    known = ("chassis", "chassis/A", "attached", {"uuid": GPU, "gpuid": "0-a", "host": "a"})
    lost = ("chassis", "chassis/A", "detach-begun", {"uuid": "", "gpuid": "0-a", "host": None})
    assert found(91, [known, SHOWN, LET_GO, lost]) == []
    assert found(91, [known, SHOWN, lost]) == [2]
