"""Journal and report bear the numbers of the paper's steps (Figs. 3 and 4)."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import mews.scenarios
from mews.harness.engine import Engine
from mews.harness.journal import Journal
from mews.harness.options import RunOptions
from mews.harness.report.html import html_page
from mews.harness.report.run import Run
from mews.harness.scenario.loader import load_scenario
from mews.systems.kubecomp import steps
from tests.systems.kubecomp.world import config_of, hardware

SCENARIOS = Path(mews.scenarios.__file__).parent


@functools.cache
def played(name: str) -> Run:
    return Engine(RunOptions()).run(load_scenario(SCENARIOS / name))


def numbers(text: str, figure: int) -> list[int]:
    found = re.search(rf"Fig\. {figure}: ([\d, ]+)", text)
    return [int(number) for number in found[1].split(",")] if found else []


def test_a_reconfiguration_goes_through_all_steps_of_both_figures_in_their_order() -> None:
    texts = [line.fields["paper"] for line in played("demo.yaml").lines if "paper" in line.fields]
    for figure, last in ((3, 10), (4, 8)):
        walked = [number for text in texts for number in numbers(text, figure)]
        assert walked == sorted(walked)
        assert set(walked) == set(range(1, last + 1))


def test_they_stand_in_the_lines_as_written_out_and_in_the_report() -> None:
    run = played("demo.yaml")
    assert sum('"paper":"Fig. 3: 5; Fig. 4: 4"' in line.as_json() for line in run.lines) == 4
    assert html_page([run]).count("Fig. 3: 5; Fig. 4: 4") == 4


def test_a_stack_without_a_workflow_of_that_kind_has_none() -> None:
    lines = played("kubelet/01-container-restart.yaml").lines
    assert lines
    assert not [line for line in lines if "paper" in line.fields]


def walked(*events: tuple[str, str, str, dict[str, Any]]) -> dict[int, str]:
    journal = Journal(lambda: 0.0)
    for layer, actor, event, fields in events:
        journal.write(layer, actor, event, **fields)
    return dict(steps.steps(config_of(hardware(4, 4)), journal.lines()))


ASKS = {"scheduler": "kubecomp-scheduler", "requests": {"falcon.com/gpu": 5}}
LEAVES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("chassis", "chassis/A", "detach-begun", {"gpuid": "0-000400", "host": None}),
    ("chassis", "chassis/A", "detached", {"gpuid": "0-000400", "host": None}),
]
WANTED = ("api", "pod/default/a", "annotations", {"annotations": {"dst_node": "host-1"}})


def comes(host: str) -> tuple[str, str, str, dict[str, Any]]:
    return ("chassis", "chassis/A", "attached", {"gpuid": "0-000400", "host": host})


def test_what_is_moved_for_nobody_is_no_step() -> None:
    created = ("api", "pod/default/a", "created", ASKS)
    assert walked(*LEAVES, comes("host-1")) == {}
    assert walked(created, WANTED, *LEAVES, comes("host-2")) == {0: steps.SUBMITTED, 1: steps.DESIGNATED}
    served = walked(created, WANTED, *LEAVES, comes("host-1"))
    assert [served[number] for number in (2, 3, 4)] == [steps.MOVED] * 3


def test_a_pod_that_fits_where_devices_are_goes_past_the_reconfiguration() -> None:
    bound = ("api", "pod/default/a", "bound", {"node": "host-1"})
    assert walked(("api", "pod/default/a", "created", ASKS), bound) == {0: steps.SUBMITTED, 1: steps.AT_HAND}


def test_pods_of_others_are_in_no_workflow() -> None:
    for asks in ({**ASKS, "scheduler": "default-scheduler"}, {**ASKS, "requests": {"cpu": 1}}):
        told = ("api", "kubecomp-scheduler", "event", {"reason": "Reconfig", "object": "pod/default/a"})
        assert walked(("api", "pod/default/a", "created", asks), WANTED, told) == {}
