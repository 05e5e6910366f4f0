"""What a scenario puts in the place of ours, as it is on this machine: modules that can be loaded, manifests read."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.replacement import Replacement
from mews.kube.scheduling.errors import PluginDefinitionError
from mews.systems import registry

_HANDLE = "the scheduler's handle"


class LoadedReplacements:
    """``stack.replace`` of a scenario. ``folder`` is the scenario's own: modules are looked up in it first."""

    def __init__(self, scenario: Scenario) -> None:
        self.folder = scenario.path.absolute().parent if scenario.path is not None else Path.cwd()
        self.allow_outside = scenario.allow_outside
        self._scenario = scenario
        self._replace = scenario.stack.replace

    def of(self, component: str) -> Replacement | None:
        """Return what takes that component's place, if anything does."""
        return self._replace.get(component)

    def check(self) -> None:
        """Load all of it.

        Raises ScenarioError.
        """
        for component in self._replace:
            self.parts(component)
        self.documents()

    def parts(self, component: str) -> dict[str, Callable[..., Any]]:
        """Return what takes the place of parts of that component: ``plugin``, with its options already given;
        ``policy``.

        Raises ScenarioError.
        """
        yours = self.of(component)
        found: dict[str, Callable[..., Any]] = {}
        if yours is None:
            return found
        from mews.kube.scheduling.config import load_callable, load_plugin

        if yours.plugin is not None:
            with self._importable(yours, "plugin", yours.plugin):
                _check_options(load_callable(yours.plugin, _HANDLE), yours.options)
                found["plugin"] = load_plugin(yours.plugin, yours.options)
        if yours.policy is not None:
            with self._importable(yours, "policy", yours.policy):
                found["policy"] = load_callable(yours.policy, _words_of(yours))
        return found

    @contextlib.contextmanager
    def _importable(self, yours: Replacement, part: str, reference: str) -> Iterator[None]:
        """The scenario's own folder is looked through first. Another scenario's modules of the same names are others:
        what came from this folder is not kept."""
        known, here = set(sys.modules), str(self.folder)
        sys.path.insert(0, here)
        try:
            yield
        except PluginDefinitionError as error:
            reason = str(error).removeprefix(f"plugin {reference!r}: ")
            raise self._scenario.refusal((*yours.place, part), reference, reason) from error
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
        """Return whether a manifest brings that component: then nothing is started for it."""
        yours = self.of(component)
        return yours is not None and yours.manifest is not None

    def documents(self) -> dict[str, list[dict[str, Any]]]:
        """Component -> the objects of its manifest, as written.

        Raises ScenarioError for a file that cannot be read or holds something else.
        """
        return {
            component: self._documents(yours, yours.manifest)
            for component, yours in self._replace.items()
            if yours.manifest is not None
        }

    def _documents(self, yours: Replacement, manifest: str) -> list[dict[str, Any]]:
        def refusal(reason: str) -> ScenarioError:
            return self._scenario.refusal((*yours.place, "manifest"), manifest, reason)

        try:
            documents = list(yaml.safe_load_all(Path(manifest).read_text(encoding="utf-8")))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise refusal(" ".join(str(error).split())) from error
        found = [document for document in documents if document is not None]
        if not all(map(_is_object, found)):
            raise refusal("each document must be an object with kind and metadata.name")
        return found


def _is_object(document: Any) -> bool:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str) and bool(document.get("kind"))


def _words_of(yours: Replacement) -> str:
    """Return what the policy of a component is called with, in words."""
    component = next(each for each in registry.system(yours.system).components if each.name == yours.component)
    return component.parts["policy"]


def _check_options(factory: Callable[..., Any], options: dict[str, Any]) -> None:
    """Raise PluginDefinitionError for options that the factory does not take."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # some callables in C do not say
        return
    try:
        signature.bind(object(), **options)
    except TypeError as error:
        raise PluginDefinitionError(f"cannot be called with {_HANDLE} and the options {options}: {error}") from error
