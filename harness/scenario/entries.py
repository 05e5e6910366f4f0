"""Steps and checks as the catalogue lists them, in the words of their models."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from typing import Any

from mews.harness.catalogue.entry import CatalogueEntry, first_sentence
from mews.harness.scenario.actions import ACTIONS, Step
from mews.harness.scenario.base import Model
from mews.harness.scenario.expectations import Check
from mews.harness.scenario.extension import STEPS, CheckKind, StepKind
from mews.registry import NotRegisteredError


def steps() -> Iterator[CatalogueEntry]:
    """Yield each action; other packages' after ours."""
    yield from (_entry(name.rstrip("_"), Step.model_fields[name]) for name in ACTIONS)
    yield from _of_others(StepKind)


def checks() -> Iterator[CatalogueEntry]:
    """Yield each condition of `wait`, `assert` and `hold`; other packages' after ours."""
    yield from (_entry(name, field) for name, field in Check.model_fields.items())
    yield from _of_others(CheckKind)


def _entry(name: str, field: Any) -> CatalogueEntry:
    return CatalogueEntry(name, first_sentence(field.description or _words_of(field.annotation)))


def _words_of(hint: Any) -> str:
    """Return the docstring of the model that a field takes, alone or among others."""
    if inspect.isclass(hint) and issubclass(hint, Model):
        return hint.__doc__ or ""
    return next(filter(None, map(_words_of, typing.get_args(hint))), "")


def _of_others(sort: type[Any]) -> Iterator[CatalogueEntry]:
    for name in STEPS.others():
        try:
            found = STEPS.find(name)
        except NotRegisteredError:  # one that is broken spoils the list for nobody
            continue
        if isinstance(found, sort):
            yield CatalogueEntry(name, first_sentence(getattr(found.options, "__doc__", None) or ""), "installed")
