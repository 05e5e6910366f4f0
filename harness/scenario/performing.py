"""One step as the journal shows it: begun, then passed or failed. Scenarios and live sessions do theirs through it."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import ValidationError

from mews.harness.scenario.actions import Step
from mews.harness.scenario.complaints import first_complaint
from mews.harness.scenario.errors import Failure, ScenarioError, StepFailedError
from mews.harness.scenario.language.names import MisusedNameError
from mews.harness.scenario.language.outputs import given_out
from mews.harness.scenario.step_context import StepContext
from mews.harness.scenario.steps import do

_BEYOND_S = 30.0


async def perform(stage: StepContext, step: Step, *, number: int, actor: str) -> Any:
    """Do the step and write down how it went; what hangs is a failure. What the step came to, None for most.

    Raises StepFailedError, or ScenarioError where the step names something that there is not.
    """
    journal = stage.cluster.journal
    if step.name:
        stage.marks[step.name] = len(journal)
    named = {"name": step.name} if step.name else {}
    journal.write("step", actor, "begun", step=number, do=step.action, **named)
    limit_s = _limit_s(stage, step)
    try:
        async with asyncio.timeout(limit_s):
            step = _with_outputs(stage, step)
            result = await do(stage, step)
            stage.outputs |= given_out(step.outputs, result)
    except TimeoutError as error:
        failure = Failure(f"{step.action} to return", "it hangs", limit_s)
        journal.write("step", actor, "failed", step=number, do=step.action, reason=failure.reason)
        raise StepFailedError(failure) from error
    except StepFailedError as error:
        journal.write("step", actor, "failed", step=number, do=step.action, reason=error.failure.reason)
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        journal.write("step", actor, "failed", step=number, do=step.action, reason=reason)
        raise
    journal.write("step", actor, "passed", step=number, do=step.action)
    return result


def _with_outputs(stage: StepContext, step: Step) -> Step:
    """Return the step with what those before it gave out.

    Raises StepFailedError for an output that was not given, ScenarioError for one that does not fit.
    """
    try:
        return step.with_outputs(stage.outputs)
    except MisusedNameError as error:
        raise StepFailedError(Failure(f"{error.value} to be known", str(error))) from None
    except ValidationError as error:
        place, text = first_complaint(error)
        raise ScenarioError(f"with the outputs of the steps before it: {place}: {text}") from None


def _limit_s(stage: StepContext, step: Step) -> float | None:
    """Return a guard in wall-clock time against calls that hang; virtual time has none (it would keep the run
    going)."""
    if stage.cluster.time == "virtual":
        return None
    longest = max(step.timeout or 0.0, stage.scenario.step_timeout, stage.cluster.pace.loop_s(step.sleep or 0.0))
    return None if step.workload or step.hold else longest + _BEYOND_S
