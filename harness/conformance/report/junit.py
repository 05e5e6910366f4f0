"""JUnit XML: a test case per clause, its class the dialect."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from mews.harness.conformance.judge import ERROR, FAILED, SKIPPED, Result
from mews.harness.conformance.report.outcome import Outcome, after
from mews.harness.conformance.report.text import details

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold."""


def junit_xml(outcome: Outcome) -> str:
    """One suite; quirks and waivers pass, with their reason as output. A table that is not restored is an error."""
    counts = outcome.counts()
    lost = outcome.restored or ()
    numbers = {
        "tests": str(len(outcome.results) + bool(lost)),
        "failures": str(counts[FAILED]),
        "errors": str(counts[ERROR] + bool(lost)),
        "skipped": str(counts[SKIPPED]),
        "time": f"{outcome.seconds:.3f}",
    }
    root = ElementTree.Element("testsuites", {"name": "mews conform", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": outcome.dialect, **numbers})
    properties = ElementTree.SubElement(suite, "properties")
    facts = {"url": outcome.url, **outcome.versions.service, **outcome.versions.schemas}
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", {"name": _clean(name), "value": _clean(value)})
    for result in outcome.results:
        _case(suite, outcome.dialect, result)
    if lost:
        case = ElementTree.SubElement(suite, "testcase", {"classname": outcome.dialect, "name": "restored"})
        ElementTree.SubElement(case, "error", {"message": _clean("; ".join(lost))})
    ElementTree.SubElement(suite, "system-out").text = _clean("\n".join(after(outcome)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, dialect: str, result: Result) -> None:
    attributes = {
        "classname": dialect,
        "name": f"{result.clause.id} {result.clause.title}",
        "time": f"{result.seconds:.3f}",
    }
    case = ElementTree.SubElement(suite, "testcase", attributes)
    if result.verdict == SKIPPED:
        ElementTree.SubElement(case, "skipped", {"message": _clean(result.reason)})
    elif not result.good:
        kind = "failure" if result.verdict == FAILED else "error"
        element = ElementTree.SubElement(case, kind, {"message": _clean(result.reason), "type": result.verdict})
        element.text = _clean("\n".join(details(result)))
    elif result.note:
        ElementTree.SubElement(case, "system-out").text = _clean(f"{result.verdict}: {result.reason}\n{result.note}")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("�", text)
