"""Scenarios run from a test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mews.harness.catalogue.files import file_of
from mews.harness.clusters.session import ClusterSession
from mews.harness.engine import Engine
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.options import RunOptions, ServingOptions, time_of
from mews.harness.report.html import write_report
from mews.harness.report.run import Run
from mews.harness.report.text import details
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario
from mews.harness.scenario.result import Result
from mews.own_files import make_own_folder, write_own


@dataclass(slots=True)
class Runner:
    """What the fixture ``mews_run`` is: call it with a scenario.

    ``session`` is shared by the runs of all tests; ``speed`` applies outside virtual time. ``hardware`` and
    ``dialect`` replace values of the scenario; ``insecure`` serves plain HTTP. ``folder`` is the test's folder, in
    which relative paths are looked up if the working directory has no such file. ``allow_outside``: scenarios may
    name files outside their folders. ``images`` are the user's images, used after a scenario's;
    ``unknown_images`` is the default for other images.
    """

    cluster: str
    folder: Path
    artefacts: Path
    session: ClusterSession | None = None
    speed: float = 1.0
    allow_outside: bool = False
    images: Mapping[str, Any] = field(default_factory=dict)
    unknown_images: str | None = None
    kubernetes: str | None = None
    hardware: str | None = None
    dialect: str | None = None
    insecure: bool = False
    runs: list[Run] = field(default_factory=list, repr=False)
    reports: list[Path] = field(default_factory=list, repr=False)

    def __call__(
        self, path: str | Path, seed: int | None = None, *, time: str | None = None, **overrides: Any
    ) -> Result:
        """Run one scenario, given by its path or included name, and return its result.

        ``overrides`` are ``--set``: ``workload__trace="x.csv"``. Raises ScenarioError, BadInputError, RequirementError.
        """
        __tracebackhide__ = True
        try:
            return self._run(path, seed, time, overrides)
        except (ScenarioError, BadInputError, RequirementError) as error:
            raise error.with_traceback(None) from None  # its line says all: frames of ours are none of the test's

    def _run(self, path: str | Path, seed: int | None, time: str | None, overrides: Mapping[str, Any]) -> Result:
        hardware = {} if self.hardware is None else {"hardware": self.hardware}
        release = {} if self.kubernetes is None else {"stack.kubernetes": self.kubernetes}
        sets = {**hardware, **release, **overrides}
        scenario = load_scenario(self._find(path), sets, allow_outside=self.allow_outside)
        images, unknown = {**self.images, **scenario.images}, scenario.unknown_images or self.unknown_images
        scenario = scenario.model_copy(update={"images": images, "unknown_images": unknown})
        engine = Engine(self._options(time), artefacts=self.artefacts, session=self.session)
        run = engine.run(scenario, seed)
        self.runs.append(run)
        return run.result

    def _options(self, time: str | None) -> RunOptions:
        time = time_of(self.cluster, time)
        serving = ServingOptions(insecure=self.insecure and time == "wall")
        return RunOptions(self.cluster, time, self.speed, self.dialect, serving=serving)

    def _find(self, path: str | Path) -> Path:
        candidates = [Path(path), self.folder / path]
        found = next((candidate for candidate in candidates if candidate.is_file()), None)
        return found or file_of("scenario", Path(path))

    def keep(self) -> list[str]:
        """Return them after a failed test: make sure that each run left its artefacts, and say what it came to."""
        return [text for number, run in enumerate(self.runs) for text in self._keep(number, run)]

    def _keep(self, number: int, run: Run) -> list[str]:
        folder = run.result.artefacts
        if folder is None:
            folder = self.artefacts / f"{run.result.scenario}-{run.result.seed}-{number}"
            make_own_folder(folder)
            write_own(folder / "result.json", json.dumps(run.result.as_dict(), indent=2) + "\n")
            lines = "".join(line.as_json() + "\n" for line in run.lines)
            write_own(folder / "journal.jsonl", lines)
            self.reports.append(write_report(run, folder))
        elif run.report is not None:
            self.reports.append(run.report)
        result = run.result
        where = [] if result.artefacts else [f"artefacts: {folder}"]
        return [f"{result.scenario}, seed {result.seed}: {result.verdict}", *details(run), *where]
