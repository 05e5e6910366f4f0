"""The references of the documentation site, made from the code when the site is built.

They are not kept in the repository: what is not there cannot be stale, and nobody merges it. ``python -m ci.reference
FOLDER`` writes them as Markdown for who wants to read them without the site. A page says of each thing what the code
says of it; where a page has no words, the code lacks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ci.reference import bugs, charts, commands, faults, ignored, journal, nvml, schemas, testing, values

PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands.page,
    "reference/scenario.md": schemas.scenario_page,
    "reference/steps.md": schemas.steps_page,
    "reference/checks.md": schemas.checks_page,
    "reference/hardware.md": schemas.hardware_page,
    "reference/faults.md": faults.page,
    "reference/testing.md": testing.page,
    "reference/journal.md": journal.page,
    "reference/invariants.md": values.invariants_page,
    "reference/metrics.md": values.metrics_page,
    "reference/exit-codes.md": values.exit_codes_page,
    "reference/environment.md": values.environment_page,
    "reference/ignored.md": ignored.page,
    "reference/nvml.md": nvml.page,
    "reference/charts.md": charts.page,
    "reference/bugs.md": bugs.page,
    **bugs.pages(),
}
"""Place in the site -> what makes the page."""
