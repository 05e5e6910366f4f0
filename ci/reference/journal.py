"""Lines of the journal, from the tables in the code that everybody relies on."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ci.reference.markdown import doc, paragraphs
from mews.harness import journal
from mews.systems import registry


def page() -> str:
    """Return the lines of every run, then those that systems add."""
    return paragraphs(
        "# The journal",
        "`mews run --journal FILE` writes the journal of a run, and `mews events` shows the journal of a running "
        "`mews up`. Scenarios check it with [`journal`](checks.md#journal).",
        doc(journal),
        *(f"## {name}\n\n{doc(module)}" for name, module in modules_of_systems()),
    )


def modules_of_systems() -> list[tuple[str, ModuleType]]:
    """Return the systems with lines of kinds of their own, and the module that writes and lists these."""
    found = {
        (name, each.news.__module__): import_module(each.news.__module__)
        for name in registry.names()
        for each in registry.system(name).watched()
    }
    return [(name, module) for (name, _), module in found.items()]
