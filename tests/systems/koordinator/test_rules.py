"""Requests and single devices: every rule of section 2 is a row of ``rules``."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from mews.kube.api.quantities import whole
from mews.systems.koordinator import policy
from mews.systems.koordinator.allocations import DeviceAllocation
from mews.systems.koordinator.devices import NodeDevice, NodeDeviceReport
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.names import CORE, MEMORY, RATIO
from mews.systems.koordinator.requests import ask_of, parse_demands
from mews.systems.koordinator.usage import NodeUse, PodUse
from tests.systems.koordinator.contract_rules import RULES
from tests.systems.koordinator.rules import EIGHT, PLACES, REQUESTS, PlaceRow, RequestRow

SCENARIOS = Path(__file__).parents[3] / "scenarios" / "koordinator"


def gpu(minor: int, memory: int = EIGHT, health: bool = True, kind: str = "gpu") -> NodeDevice:
    resources = {CORE: 100, MEMORY: memory, RATIO: 100} if kind == "gpu" else {f"koordinator.sh/{kind}": 100}
    return NodeDevice(kind, minor, f"{kind.upper()}-{minor}", health, resources)


def test_the_table_has_a_row_for_every_rule() -> None:
    assert len(REQUESTS) + len(PLACES) >= 80
    assert len({json.dumps(dict(row.asks), sort_keys=True) for row in REQUESTS}) == len(REQUESTS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule[0])
def test_each_rule_of_the_contract_is_held_by_tests_and_scenarios_that_are_there(
    rule: tuple[str, tuple[str, ...]],
) -> None:
    held_by = rule[1]
    assert held_by
    for name in held_by:
        module, _, test = name.partition(":")
        if module == "scenario":
            assert (SCENARIOS / f"{test}.yaml").is_file(), name
        else:
            assert callable(getattr(import_module(f"tests.systems.koordinator.{module}"), test, None)), name


@pytest.mark.parametrize("row", REQUESTS, ids=lambda row: json.dumps(dict(row.asks)))
def test_a_request_is_what_its_row_says(row: RequestRow) -> None:
    asked = {name: whole(text) for name, text in row.asks.items()}
    if row.invalid is not None:
        with pytest.raises(InvalidRequestError, match=re.escape(row.invalid)):
            parse_demands(asked)
        return
    (demand,) = parse_demands(asked)
    device = gpu(0, kind=row.type)
    given = demand.on(device)
    assert given is not None
    assert (demand.type, demand.count) == (row.type, row.count)
    if row.type == "gpu":
        core = {CORE: row.core} if row.core else {}  # it is not given where it is not asked for
        assert given == {**core, MEMORY: row.memory, RATIO: row.ratio}
    else:
        assert given == {f"koordinator.sh/{row.type}": row.amount}


@pytest.mark.parametrize(
    "row", PLACES, ids=lambda row: f"{json.dumps(dict(row.asks))} {dict(row.used)} {row.unhealthy}"
)
@pytest.mark.parametrize("choice", ["minor"])
def test_devices_are_given_as_their_row_says(row: PlaceRow, choice: policy.Choice) -> None:
    devices = tuple(gpu(minor, size * 2**20, minor not in row.unhealthy) for minor, size in enumerate(row.of))
    use = NodeUse.of(NodeDeviceReport("n", devices))
    for minor, ratio in row.used.items():
        amounts = {CORE: ratio, MEMORY: row.of[minor] * 2**20 * ratio // 100, RATIO: ratio}
        use = use.plus(PodUse(f"other-{minor}", f"default/other-{minor}", (DeviceAllocation("gpu", minor, amounts),)))
    ask = ask_of({name: whole(text) for name, text in row.asks.items()}, {})
    assert ask is not None
    given = policy.allocate(ask, use, choice=choice)
    if row.minors is None:
        assert isinstance(given, policy.NoDevices)
        assert given.reason == row.refusal
    else:
        assert not isinstance(given, policy.NoDevices)
        assert tuple(sorted(each.minor for each in given)) == row.minors


def test_a_pod_without_devices_asks_for_none() -> None:
    assert ask_of({"cpu": 1000, "memory": 1}, {}) is None
    assert parse_demands({"cpu": 1000, "example.com/thing": 3}) == ()
