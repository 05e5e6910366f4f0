"""What a scenario does beside its steps: each step of ``disruptions`` at its own moment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from mews.harness.journal import Line
from mews.harness.scenario.disruption import Disruption
from mews.harness.scenario.errors import Failure, ScenarioError, StepFailedError
from mews.harness.scenario.performing import perform
from mews.harness.scenario.step_context import StepContext

NotDone = tuple[int, Disruption, Exception]
"""The place of a step in ``disruptions``, the step, and why it did not come off."""


class Disruptions:
    """The steps beside the others: ``begun`` as each of those begins, ``done`` once they are over. ``after`` is how
    many steps there are: the first of these has the number after them in the journal.
    """

    def __init__(self, stage: StepContext, after: int) -> None:
        self._stage = stage
        self._after = after
        self._steps = tuple(enumerate(stage.scenario.disruptions))
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._listening = contextlib.ExitStack()
        self.failed: list[NotDone] = []
        """Those that did not come off, as they ended."""
        self.over = 0
        """How many are done, or did not come off."""

    @property
    def is_pending(self) -> bool:
        """Whether one is set off and not over."""
        return self.over < len(self._tasks)

    def begin(self) -> None:
        """Wait for the lines that some are done at."""
        if any(step.line is not None for _, step in self._steps):
            self._listening.callback(self._stage.cluster.journal.listen(self._on_line))

    def begun(self, number: int, name: str) -> None:
        """A step begins, the ``number``-th from 0 on: set off what counts from it."""
        for place, step in self._steps:
            counts = number == 0 if step.since is None else step.since == name
            if counts and step.line is None and place not in self._tasks:
                self._set_off(place, step, self._stage.cluster.pace.loop_s(step.at or 0.0))

    def _on_line(self, line: Line) -> None:
        for place, step in self._steps:
            if step.line == line.number:
                if step.component is not None and step.component in self._stage.cluster.components():
                    self._stage.cluster.cut(step.component)  # as the line is being written, as a crash does
                self._set_off(place, step, 0.0)

    def _set_off(self, place: int, step: Disruption, delay_s: float) -> None:
        self._tasks[place] = asyncio.create_task(self._do(place, step, delay_s))

    async def _do(self, place: int, step: Disruption, delay_s: float) -> None:
        if delay_s:
            await asyncio.sleep(delay_s)
        try:
            await perform(self._stage, step, number=self._after + place + 1, actor=self._stage.scenario.name)
        except (StepFailedError, ScenarioError) as error:
            self.failed.append((place, step, error))
        finally:
            self.over += 1

    async def done(self) -> None:
        """Wait until all are done. Those whose moment never came are among the failed."""
        await asyncio.gather(*self._tasks.values())
        self._listening.close()
        for place, step in self._steps:
            if place not in self._tasks:
                self.failed.append((place, step, StepFailedError(self._never(step))))

    def _never(self, step: Disruption) -> Failure:
        if step.line is None:
            return Failure(f"step {step.since!r} to begin" if step.since else "a step to begin", "it never did")
        return Failure(f"line {step.line} of the journal", f"it ends with line {len(self._stage.cluster.journal) - 1}")

    async def close(self) -> None:
        """End what still waits."""
        self._listening.close()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


def not_done(failed: list[NotDone]) -> Iterator[tuple[str, Exception]]:
    """Yield where each stands in the file, and why it did not come off."""
    for place, step, error in failed:
        name = f" ({step.name})" if step.name else ""
        yield f"disruptions.{place} {step.action}{name}", error
