"""Invariants as the catalogue and the reference list them: the harness's own, then those of systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mews.harness.catalogue.entry import CatalogueEntry
from mews.harness.invariants.judge import LAWS
from mews.harness.invariants.scheduled import Scheduled
from mews.harness.invariants.stranded import Stranded
from mews.harness.invariants.vocabulary import Vocabulary
from mews.harness.invariants.watches import Watches
from mews.kube.system.facility import Facility
from mews.systems import registry


def laws() -> list[tuple[Any, str]]:
    """Return the laws, each with the system that it is judged with ("": always), by number."""
    own: list[tuple[Any, str]] = [(law, "") for law in (*LAWS.values(), Watches, Scheduled, Stranded, Vocabulary)]
    for name, system in registry.usable().items():
        judged = (*system.judging.invariants(), *system.judging.laws(system.configure(system.options(), Facility())))
        own += [(type(law), name) for law in judged]
    return sorted(own, key=lambda each: int(each[0].number))


def invariants() -> Iterator[CatalogueEntry]:
    """Yield each by the number that `expects` names it by, and where it is judged if not in every run."""
    for law, system in laws():
        where = " (in virtual time, with the included components)" if getattr(law, "ours_alone", False) else ""
        yield CatalogueEntry(str(law.number), f"{law.name}{where}", system)
