"""Errors of a component's own program: the lines that tell of them, and the law that judges these."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from mews.harness.clusters.own_failures import OwnFailureLines
from mews.harness.clusters.unit import COMPONENT
from mews.harness.invariants.own_failures import OwnFailures
from mews.harness.journal import Journal
from mews.harness.recorder import Records
from mews.kube.api.errors import ConflictError, UnavailableError
from mews.kube.emulated.controllers.daemonset.controller import DaemonSetController
from tests.harness.invariants.law_runs import played
from tests.harness.invariants.test_report_laws import Said, judged


def component(event: str, **fields: str) -> Said:
    return (1.0, "component", "operator", event, fields)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        pytest.param(component("failed", cause="KeyError: 'x'", place="a.py:1"), 1, id="it goes on"),
        pytest.param(component("crashed", cause="TypeError: no"), 1, id="it ends"),
        pytest.param(component("crashed", cause="ConnectionError: gone"), 0, id="a machine's"),
        pytest.param(component("crashed", cause="ProcessEndedError: exit 1"), 0, id="a program's"),
    ],
)
def test_only_an_error_of_its_own_program_is_a_breach(line: Said, count: int) -> None:
    assert [each.first and each.first.event for each in judged(OwnFailures(), [line])] == [line[3]] * count


def rejected(message: str) -> Said:
    return (1.0, "kubelet", "kubelet/n1", "rejected", {"pod": "default/a", "reason": "x", "message": message})


@pytest.mark.parametrize(
    ("message", "count"),
    [
        pytest.param("rpc error: code = Unknown desc = Unexpected <class 'IndexError'>: list index", 1, id="its own"),
        pytest.param(
            "rpc error: code = Unknown desc = Unexpected <class 'ConnectionError'>: gone", 0, id="a machine's"
        ),
        pytest.param("rpc error: code = Unavailable desc = no API", 0, id="an answer"),
        pytest.param("Node didn't have enough resource: cpu", 0, id="no room"),
    ],
)
def test_a_pod_that_is_rejected_for_an_error_of_a_plugins_own_program_is_a_breach(message: str, count: int) -> None:
    assert len(judged(OwnFailures(), [rejected(message)])) == count


def lines_of(error: BaseException) -> list[dict[str, Any]]:
    """What the journal says once a component has logged that error."""
    journal = Journal(lambda: 0.0)
    failures = OwnFailureLines(journal)
    records = Records(lambda: 0.0, "mews.tried.", failures.note)

    async def run() -> None:
        records.begin()
        failures.begin()
        try:
            raise error
        except Exception:
            logging.getLogger("mews.tried.operator").exception("it failed")
        failures.end()
        records.end()

    asyncio.run(run())
    return [line.as_dict() for line in journal.lines()]


def test_an_error_that_is_logged_has_a_line_with_its_place() -> None:
    (line,) = lines_of(KeyError("x"))
    assert (line["actor"], line["event"], line["cause"]) == ("operator", "failed", "KeyError: 'x'")
    assert line["place"].startswith("test_own_failures.py:")
    assert lines_of(ConflictError("x")) == lines_of(UnavailableError("x")) == lines_of(TimeoutError("x")) == []


@pytest.mark.parametrize("named", [True, False])
def test_an_error_that_escapes_from_a_callback_of_a_component_has_a_line(named: bool) -> None:
    journal = Journal(lambda: 0.0)
    failures = OwnFailureLines(journal)

    async def run() -> None:
        failures.begin()
        asyncio.get_running_loop().set_exception_handler(failures._escaped)
        failures._before = lambda loop, context: None
        if named:
            COMPONENT.set("timer")
        asyncio.get_running_loop().call_soon(lambda: {}["x"])  # type: ignore[index]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        failures.end()

    asyncio.run(run())
    assert [(line.actor, line.event) for line in journal.lines()] == ([("timer", "failed")] if named else [])


def test_a_controller_that_errs_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: object, **more: object) -> None:
        raise TypeError("planted")

    monkeypatch.setattr(DaemonSetController, "_sync", wrong)
    result = played("controllers/03")
    assert [each["invariant"] for each in result.violations][:1] == [27], result.reason
