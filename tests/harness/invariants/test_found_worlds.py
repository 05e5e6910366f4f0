"""Worlds in which ``mews fuzz`` found a law that did not know what a fault may do: the faults alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mews.scenarios
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import load_scenario

FOLDER = Path(mews.scenarios.__file__).parent
OLD = {"kind": "stale-reads", "expires_s": 90}
LOST = {"kind": "lost-answer", "resource": "pods"}
OUT_OF_ORDER = {"kind": "unordered-watches", "expires_s": 90}
CONTROLLERS = "controller-manager"
DRIVERS = "the drivers publish the GPUs of their nodes"
MARKED = "one is marked for deletion once its toleration ends, and stays until the kubelet is back"


def fault(since: str, component: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"at": 0, "since": since, "fault": {"component": component, "add": spec}}


@pytest.mark.parametrize(
    ("name", "disruptions"),
    [
        pytest.param(
            "gpushare/03-developers",
            [fault("eight developers want a third of a GPU each", "kubelet/n1", {"kind": "too-many-requests"})],
            id="a kubelet reports all at once what it could not",
        ),
        pytest.param(
            "dra/04-selectors",
            [
                {"at": 10, "since": DRIVERS, "kill": "kubelet/n1"},
                fault("the host has a process there", CONTROLLERS, LOST),
            ],
            id="a report that is lost, and nothing happens for long",
        ),
        pytest.param(
            "dra/04-selectors",
            [
                fault(DRIVERS, "dra-gpu-driver/four", {"kind": "expired-token", "expires_s": 10}),
                {**fault(DRIVERS, "dra-gpu-driver/four", {**OUT_OF_ORDER, "expires_s": 10}), "at": 6},
            ],
            id="a driver is told late of the slice that it wrote",
        ),
        pytest.param(
            "dra/12-partitions",
            [{**fault("one half is given back", CONTROLLERS, {"kind": "conflict"}), "at": 1}],
            id="a claim is given back late",
        ),
        pytest.param(
            "dra/13-shares",
            [fault("the first share is given back", CONTROLLERS, OUT_OF_ORDER)],
            id="a claim is given back by changes out of order",
        ),
        pytest.param(
            "kubelet/13-host-power",
            [{"at": 1, "fault": {"component": "kubelet/host-1", "add": OLD}}],
            id="a kubelet begins anew by what it was told before",
        ),
        pytest.param(
            "gpushare/23-pool-arrives",
            [
                {"at": 10, "restart": "gpushare-extender"},
                fault("another one finds no room", "gpushare-extender", {"kind": "server-error", "count": 20}),
            ],
            id="an extender begins anew while the API refuses it",
        ),
        pytest.param(
            "api/01-answer-lost",
            [
                {"at": 0, "kill": "kubelet/host-2"},
                {"at": 0, "fault": {"component": CONTROLLERS, "add": {"kind": "lost-answer", "count": 5}}},
            ],
            id="nobody hears of leases for a while",
        ),
    ],
)
def test_no_law_is_broken(name: str, disruptions: list[dict[str, Any]]) -> None:
    run = played(name, disruptions)
    assert run.result.verdict == "passed", run.result.reason
    assert [line for line in run.lines if (line.layer, line.event) == ("fault", "fired")]


@pytest.mark.parametrize("judged_by", ["laws", "checks"])
def test_a_kubelet_is_not_started_while_its_host_is_off(judged_by: str) -> None:
    run = played("kubelet/13-host-power", [{"at": 0, "since": MARKED, "restart": "kubelet/host-1"}], judged_by)
    why = "component 'kubelet/host-1': its host is switched off"
    assert run.result.verdict == ("passed" if judged_by == "laws" else "failed"), run.result.reason
    assert any(line.event == "failed" and why in line.fields["reason"] for line in run.lines)


def played(name: str, disruptions: list[dict[str, Any]], judged_by: str = "laws") -> Run:
    (path,) = FOLDER.glob(f"{name}*.yaml")
    settings = [f"disruptions={json.dumps(disruptions)}", f"judgedBy={judged_by}", "tail=60"]
    return Engine(RunOptions()).run(load_scenario(path, settings), 1)
