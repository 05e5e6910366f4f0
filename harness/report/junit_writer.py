"""JUnit XML as CI systems read it (the schema of jenkinsci/xunit-plugin: testsuites, testsuite, testcase)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from msgspec import Struct, field

from mews.harness.terminal import escaped

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold."""


class JUnitCase(Struct, frozen=True):
    """One test case. ``bad`` is ``failure``, ``error``, ``skipped`` or "" for a good one, with ``message``, the
    ``verdict`` behind it (left out where "") and ``text``; ``seconds`` None: not measured."""

    classname: str
    name: str
    seconds: float | None = None
    bad: str = ""
    message: str = ""
    verdict: str = ""
    text: str = ""
    output: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


class JUnitSuite(Struct, frozen=True):
    """All cases of a run, in order; ``title`` names the document, ``name`` its one suite."""

    title: str
    name: str
    seconds: float
    cases: Sequence[JUnitCase]
    output: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


def junit_document(suite: JUnitSuite) -> str:
    """Return the XML of one suite."""
    counts = {
        "tests": str(len(suite.cases)),
        "failures": str(sum(case.bad == "failure" for case in suite.cases)),
        "errors": str(sum(case.bad == "error" for case in suite.cases)),
        "skipped": str(sum(case.bad == "skipped" for case in suite.cases)),
        "time": f"{suite.seconds:.3f}",
    }
    root = ElementTree.Element("testsuites", {"name": suite.title, **counts})
    element = ElementTree.SubElement(root, "testsuite", {"name": suite.name, **counts})
    _properties(element, suite.properties)
    for case in suite.cases:
        _case(element, case)
    _output(element, suite.output)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, case: JUnitCase) -> None:
    attributes = {"classname": _clean(case.classname), "name": _clean(case.name)}
    if case.seconds is not None:
        attributes["time"] = f"{case.seconds:.3f}"
    element = ElementTree.SubElement(suite, "testcase", attributes)
    _properties(element, case.properties)
    if case.bad:
        verdict = {"type": case.verdict} if case.verdict else {}
        bad = ElementTree.SubElement(element, case.bad, {"message": _clean(case.message), **verdict})
        bad.text = _clean(case.text) if case.text else None
    _output(element, case.output)


def _properties(parent: ElementTree.Element, values: Mapping[str, str]) -> None:
    if not values:
        return
    properties = ElementTree.SubElement(parent, "properties")
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", {"name": _clean(name), "value": _clean(value)})


def _output(parent: ElementTree.Element, text: str) -> None:
    if text:
        ElementTree.SubElement(parent, "system-out").text = _clean(text)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("�", escaped(text))
