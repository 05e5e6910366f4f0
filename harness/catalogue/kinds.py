"""What `mews list` lists: kind -> where its entries come from. Nothing is loaded before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from mews.harness.catalogue.entry import CatalogueEntry
from mews.registry import load

KINDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "scenarios": ("Scenarios, for `mews run NAME`", "mews.harness.catalogue.sources:scenarios"),
        "hardware": ("Inventories, for `--hardware NAME`", "mews.harness.catalogue.sources:hardware"),
        "images": ("Images that emulated nodes know", "mews.harness.catalogue.sources:images"),
        "faults": ("Faults of a chassis or a host", "mews.harness.catalogue.sources:faults"),
        "steps": ("Actions of a scenario's steps", "mews.harness.scenario.entries:steps"),
        "checks": ("What steps wait for and assert", "mews.harness.scenario.entries:checks"),
        "invariants": ("Laws that every run is judged by", "mews.harness.invariants.entries:invariants"),
        "systems": ("Systems under test, for `--stack NAME`", "mews.harness.catalogue.sources:systems"),
        "experiments": ("Experiments, for `mews experiment NAME`", "mews.harness.catalogue.sources:experiments"),
        "clusters": ("Clusters, for `--cluster NAME`, and their Kubernetes", "mews.harness.catalogue.sources:clusters"),
        "dialects": ("Dialects of a chassis, for `--dialect NAME`", "mews.harness.catalogue.sources:dialects"),
        "ignored": ("Kinds, and fields of pods, that are stored and ignored", "mews.harness.catalogue.sources:ignored"),
        "profiles": ("Boards, latencies, quirks and conformance profiles", "mews.harness.catalogue.sources:profiles"),
    }
)
"""Kind -> what it is, and ``module:function`` of its entries."""


def entries(kind: str, word: str = "") -> list[CatalogueEntry]:
    """Return those of a kind that have the word in them.

    Raises KeyError for no such kind.
    """
    _, source = KINDS[kind]
    made: Callable[[], Iterable[CatalogueEntry]] = load(source)
    return [each for each in made() if each.matches(word)]
