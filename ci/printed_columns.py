"""The columns that ``kubectl get`` shows, by kind: from upstream's printers (pkg/printers/internalversion/printers.go),
and from the tables of APIServices and, since 1.37, of CustomResourceDefinitions.

A kind that has none there is printed with its name and the time of its creation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ci.release_sources import Sources

_PRINTERS = "pkg/printers/internalversion/printers.go"
_ELSEWHERE = (
    ("apiservices.apiregistration.k8s.io", "kube-aggregator", "pkg/registry/apiservice/etcd/etcd.go"),
    (
        "customresourcedefinitions.apiextensions.k8s.io",
        "apiextensions-apiserver",
        "pkg/registry/customresourcedefinition/tableconvertor/tableconvertor.go",
    ),
)
"""Kind, module and file of those that have their own tables."""
_DEFINITIONS = re.compile(
    r"^\t(\w+) :?= (append\(\w+, )?\[\]metav1\.TableColumnDefinition\{\n(.*?)^\t\}", re.MULTILINE | re.DOTALL
)
_HANDLER = re.compile(r"h\.TableHandler\((\w+), (\w+)\)")
_PRINTED = re.compile(r"^func (\w+)\(\w+ \*(\w+)\.(\w+),", re.MULTILINE)
_IMPORT = re.compile(r'^\t(?:(\w+) )?"k8s\.io/kubernetes/pkg/apis/(\w+)"', re.MULTILINE)
_RESOURCE = re.compile(r'DefaultQualifiedResource: +\w+\.Resource\("(\w+)"\)')
_COLUMN = re.compile(r'\{(Name: "[^\n]*)\}')
_MEMBER = re.compile(r'(Name|Type|Format|Priority): "?([\w .()-]+)"?')


def columns(sources: Sources, kinds: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Qualified plural -> ``NAME: TYPE [FORMAT] [wide]`` of each column. ``kinds`` as in ``kinds.json``."""
    text = sources.text("kubernetes", _PRINTERS)
    defined: dict[str, list[str]] = {}
    for name, more, body in _DEFINITIONS.findall(text):
        defined[name] = [*(defined[name] if more else ()), *_lines(body)]
    packages = {alias or package: package for alias, package in _IMPORT.findall(text)}
    printed = {function: (packages.get(alias, ""), kind) for function, alias, kind in _PRINTED.findall(text)}
    plurals = {
        (version.rpartition("/")[0], words.split()[0]): plural
        for version, members in kinds.items()
        for plural, words in members.items()
    }
    found = {}
    for name, function in _HANDLER.findall(text):
        package, kind = printed.get(function, ("", ""))
        group = _group(sources, package) if package else ""
        if plural := plurals.get((group, kind)):
            found[f"{plural}.{group}".rstrip(".")] = defined[name]
    for plural in _unprinted(sources):
        found.pop(plural, None)
    for qualified, module, path in _ELSEWHERE:
        if lines := list(_lines(sources.text(module, path))):
            found[qualified] = lines
    return dict(sorted(found.items()))


def _group(sources: Sources, package: str) -> str:
    name = re.search(r'const GroupName = "([^"]*)"', sources.text("kubernetes", f"pkg/apis/{package}/register.go"))
    return name[1] if name else ""


def _unprinted(sources: Sources) -> Iterator[str]:
    """Kinds whose storage does not use the printers."""
    for file in sources.module("kubernetes").glob("pkg/registry/*/*/storage/storage.go"):
        text = file.read_text(encoding="utf-8")
        if "NewDefaultTableConvertor" in text:
            group = _group(sources, file.parts[-4])
            for plural in _RESOURCE.findall(text):
                yield f"{plural}.{group}" if group else plural


def _lines(text: str) -> Iterator[str]:
    for column in _COLUMN.findall(text):
        given = dict(_MEMBER.findall(column.partition(" Description:")[0]))
        words = given["Type"], given.get("Format", ""), "wide" if given.get("Priority") == "1" else ""
        yield f"{given['Name']}: {' '.join(filter(None, words))}"
