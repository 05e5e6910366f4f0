"""What fits in a table each: invariants, metrics, exit codes, environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ci.reference.markdown import code, doc, line, paragraphs, table
from mews import environment
from mews.emulator.telemetry.exposition import METRICS
from mews.harness.errors import EXIT_CODES
from mews.harness.invariants.entries import laws
from mews.harness.scenario.model import OWN_METRICS
from mews.kube.emulated.core.wire.request_metrics import HELP
from mews.systems import registry
from mews.systems.gpushare.metrics import ExtenderMetrics
from mews.systems.koordinator import metrics as koordinator

Metric = tuple[str, str]


def invariants_page() -> str:
    """Return each with its number."""
    sections = [
        paragraphs(
            f'## {law.number} {law.name} {{: id="{law.number}" }}',
            doc(law),
            f"Judged where `{system}` runs." if system else "",
        )
        for law, system in laws()
    ]
    return paragraphs(
        "# Invariants",
        "Laws hold in every run, regardless of the scenario. A violation names the first event that broke a law. "
        "[Faults](faults.md) name the laws that they may break. A scenario's `expects` names the laws that it breaks "
        "on purpose, and its `bounds` set how long things may take.",
        *sections,
    )


def metrics_page() -> str:
    """Return those of a run, then those that Prometheus reads."""
    heads = ("metric", "what it is")
    sections = []
    for name in registry.names():
        rows = [(code(metric), text) for metric, text in _exposed(name)]
        if rows:
            sections.append(f"### {name}\n\n{table(heads, rows)}")
    own = [(code(name), text) for name, text in OWN_METRICS.items()]
    for name in registry.names():
        own += [(code(metric), f"{text} ({name})") for metric, text in registry.system(name).measuring.names.items()]
    return paragraphs(
        "# Metrics",
        "## Of a run",
        "In results and reports; a scenario's [`metrics`](scenario.md) bounds them.",
        table(heads, own),
        "## For Prometheus",
        "`mews status` names the addresses of a running `mews up`.",
        *sections,
        "### The API server",
        table(heads, [(code(name), text) for name, text in HELP.items()]),
        "### GPUs, as dcgm-exporter shows them",
        table(heads, [(code(metric.name), metric.help) for metric in METRICS]),
    )


def _exposed(system: str) -> Iterator[Metric]:
    """Yield what a system's components expose, by name."""
    monitored = registry.system(system).measuring.monitored
    if monitored is not None:
        yield from _in(monitored().exposition().decode())
    elif system == "gpushare":
        yield from _in(ExtenderMetrics().text())
    elif system == "koordinator":
        yield from _in(koordinator.exposition({}))


def _in(text: str) -> Iterable[Metric]:
    """Metrics of a text for Prometheus; when each was made is no metric of its own."""
    found = re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE)
    return [(name, what) for name, what in found if not name.endswith("_created")]


def exit_codes_page() -> str:
    """Return each code."""
    from mews.harness import errors

    return paragraphs(
        "# Exit codes",
        line(doc(errors).partition("\n")[0]),
        table(("code", "what it says"), [(code(number), text) for number, text in EXIT_CODES.items()]),
        "Commands that run another program (`mews envtest -- CMD…`, `mews nvidia-smi`) end with its exit code.",
    )


def environment_page() -> str:
    """Return both tables."""
    heads = ("variable", "what it does")
    return paragraphs(
        "# Environment variables",
        "## That Mews reads",
        table(heads, [(code(name), text) for name, text in environment.READ.items()]),
        "## That programs find set",
        table(heads, [(code(name), text) for name, text in environment.GIVEN.items()]),
    )
