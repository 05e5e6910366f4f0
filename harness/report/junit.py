"""JUnit XML as CI systems read it (the schema of jenkinsci/xunit-plugin: testsuites, testsuite, testcase)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from mews.harness.report.line import plain
from mews.harness.report.run import Run
from mews.harness.report.text import details, told

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold."""


def junit_xml(runs: Sequence[Run]) -> str:
    """One suite; a test case per scenario and seed, its class the path of the file."""
    counts = {
        "tests": str(len(runs)),
        "failures": str(sum(run.result.verdict == "failed" for run in runs)),
        "errors": str(sum(run.result.verdict == "error" for run in runs)),
        "skipped": str(sum(run.result.verdict == "skipped" for run in runs)),
        "time": f"{sum(run.result.wall_s for run in runs):.3f}",
    }
    root = ElementTree.Element("testsuites", {"name": "mews", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "mews", **counts})
    for run in runs:
        _case(suite, run)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, run: Run) -> None:
    result = run.result
    name = f"{result.scenario}[seed={result.seed}]"
    classname = ".".join(Path(result.path).with_suffix("").parts).lstrip("./") or result.scenario
    attributes = {"classname": _clean(classname), "name": _clean(name), "time": f"{result.wall_s:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", attributes)
    numbers = {name: value for name, value in result.metrics.items() if isinstance(value, int | float)}
    if numbers:
        properties = ElementTree.SubElement(case, "properties")
        for key, value in numbers.items():
            ElementTree.SubElement(properties, "property", {"name": key, "value": str(value)})
    if result.verdict == "skipped":
        ElementTree.SubElement(case, "skipped", {"message": _clean(result.reason)})
    elif not run.good:
        kind = "failure" if result.verdict == "failed" else "error"
        element = ElementTree.SubElement(case, kind, {"message": _clean(result.reason), "type": result.verdict})
        element.text = _clean("\n".join(details(run)))
        output = ElementTree.SubElement(case, "system-out")
        output.text = _clean("\n".join(plain(line) for line in told(run.lines)))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("�", text)
