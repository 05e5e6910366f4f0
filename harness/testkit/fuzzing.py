"""Searches from a test."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mews.harness.catalogue.files import file_of
from mews.harness.engine import Engine
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.options import RunOptions
from mews.harness.report.text import details
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import find_scenarios, load_scenario

if TYPE_CHECKING:
    from mews.harness.fuzz.files import FuzzFinding


class FoundError(AssertionError):
    """Something was found; ``str()`` says what, and where it was written."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The summary of a search that found nothing: how many worlds were played, how many situations they covered, and
    how many files of the corpus passed."""

    worlds: int
    covered: int
    replayed: int


@dataclass(slots=True)
class Fuzzer:
    """What the fixture ``mews_fuzz`` is: call it with a scenario.

    ``folder`` is the test's own, from which relative paths are looked up if the working directory has none;
    ``artefacts`` is where findings are written.
    """

    folder: Path
    artefacts: Path
    allow_outside: bool = False

    def __call__(
        self,
        path: str | Path,
        budget: str | int = 200,
        *,
        seed: int = 1,
        jobs: int = 1,
        waits: bool = False,
        oracles: Sequence[str] = (),
        without: Sequence[str] = (),
        corpus: str | Path | None = None,
        **overrides: Any,
    ) -> Searched:
        """Run the scenarios of the corpus, then search one scenario: so many worlds, or a time such as ``"60s"``.

        ``overrides`` are ``--set``, the others the options of ``mews fuzz``. Raises FoundError where a scenario of the
        corpus fails, or something is found; ScenarioError, BadInputError, RequirementError.
        """
        __tracebackhide__ = True
        from mews.harness.fuzz.search import FuzzOptions, Search, budget_of, kinds_of, target_of

        try:
            replayed = self._replay(corpus)
            kinds = kinds_of(without)
            named = tuple(f"{key.replace('__', '.')}={value}" for key, value in overrides.items())
            asked = FuzzOptions(budget_of(str(budget)), seed, jobs, waits, tuple(oracles), kinds, named)
            scenario = load_scenario(self._find(path), named, allow_outside=self.allow_outside)
            targets = [target_of(scenario, asked)]
        except (ScenarioError, BadInputError, RequirementError) as error:
            raise error.with_traceback(None) from None  # its line says all: frames of ours are none of the test's
        shutil.rmtree(self.artefacts, ignore_errors=True)
        search = Search(targets, asked, self.artefacts, lambda _: None)
        search.run()
        found = [self._described(finding, folder) for finding, _, folder in search.findings()]
        if found:
            raise FoundError("\n".join(found))
        return Searched(search.worlds, len(targets[0].features), replayed)

    def _described(self, finding: FuzzFinding, folder: Path) -> str:
        replay = f"replay: mews run {folder / 'scenario.yaml'}"
        return f"{finding.scenario}, world {finding.worlds}: {finding.problem.what}; {replay}"

    def _replay(self, corpus: str | Path | None) -> int:
        if corpus is None:
            return 0
        __tracebackhide__ = True
        folder = next((each for each in (Path(corpus), self.folder / corpus) if each.is_dir()), None)
        if folder is None:
            raise BadInputError(f"corpus {corpus}: must be a folder")
        files = [path for path in find_scenarios([folder]) if path.is_file()] if any(folder.rglob("*.yaml")) else []
        for file in files:
            scenario = load_scenario(file, allow_outside=self.allow_outside)
            run = Engine(RunOptions()).attempt(scenario, scenario.seed)
            if not run.good:
                raise FoundError("\n".join([f"{file}: {run.result.reason}", *details(run)]))
        return len(files)

    def _find(self, path: str | Path) -> Path:
        candidates = [Path(path), self.folder / path]
        return next((each for each in candidates if each.is_file()), None) or file_of("scenario", Path(path))
