"""What a scenario brings along, as it is on this machine: plugins and policies that can be loaded, manifests read."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.replacement import Replacement
from mews.kube.scheduling.config import load_callable, load_plugin
from mews.kube.scheduling.errors import BadPlugin
from mews.kube.scheduling.framework import PluginFactory
from mews.systems.kubecomp.plugin import NODE_SCORE, NodeScore


class Brought:
    """``stack.replace`` of a scenario. ``folder`` is the scenario's own: modules are looked up in it first."""

    def __init__(self, scenario: Scenario) -> None:
        self.folder = scenario.path.absolute().parent if scenario.path is not None else Path.cwd()
        self._replace = scenario.stack.replace

    def of(self, component: str) -> Replacement | None:
        """What takes that component's place, if anything does."""
        return self._replace.get(component)  # type: ignore[call-overload, no-any-return]

    def plugin(self, component: str) -> PluginFactory | None:
        """The plugin for that scheduler, if it is given one.

        Raises ScenarioError.
        """
        yours = self.of(component)
        if yours is None or yours.plugin is None:
            return None
        with self._importable(component):
            return load_plugin(yours.plugin, yours.options)

    def policy(self) -> NodeScore | None:
        """The node score in place of KubeComp's, if one is given.

        Raises ScenarioError.
        """
        yours = self.of("scheduler")
        if yours is None or yours.policy is None:
            return None
        with self._importable("scheduler"):
            score: NodeScore = load_callable(yours.policy, NODE_SCORE)
            return score

    @contextlib.contextmanager
    def _importable(self, component: str) -> Iterator[None]:
        """The scenario's own folder is looked through first. Another scenario's modules of the same names are others:
        what came from this folder is not kept."""
        known, here = set(sys.modules), str(self.folder)
        sys.path.insert(0, here)
        try:
            yield
        except BadPlugin as error:
            raise ScenarioError(f"stack.replace.{component}: {error}") from error
        finally:
            sys.path.remove(here)
            for name in sys.modules.keys() - known:
                if self._is_from_here(name):
                    del sys.modules[name]

    def _is_from_here(self, module: str) -> bool:
        top, file = module.partition(".")[0], getattr(sys.modules[module], "__file__", None)
        if file is None or top == "mews" or not Path(file).is_relative_to(self.folder):
            return False
        return Path(file).relative_to(self.folder).parts[0] in (top, f"{top}.py")

    def is_elsewhere(self, component: str) -> bool:
        """Whether a manifest brings that component: then nothing is started for it."""
        yours = self.of(component)
        return yours is not None and yours.manifest is not None

    def documents(self) -> dict[str, list[dict[str, Any]]]:
        """Component -> the objects of its manifest, as written.

        Raises ScenarioError for a file that cannot be read or holds something else.
        """
        return {
            component: _documents(f"stack.replace.{component}.manifest: {yours.manifest}", Path(yours.manifest))
            for component, yours in self._replace.items()
            if yours.manifest is not None
        }


def _documents(where: str, path: Path) -> list[dict[str, Any]]:
    try:
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ScenarioError(f"{where}: {' '.join(str(error).split())}") from error
    found = []
    for document in documents:
        if document is None:
            continue
        metadata = document.get("metadata") if isinstance(document, dict) else None
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not document.get("kind"):
            raise ScenarioError(f"{where}: each document must be an object with kind and metadata.name")
        found.append(document)
    return found
