"""What upstream's published files say of the types of a release: OpenAPI, and the Go structs themselves.

The lines are those of ``kube/emulated/types/gotypes.py``. What only a running server shows (which empty
values are kept, defaults that code fills in) is known for the first release alone, by ``ci/api_types.py``; of a later
one the words that its sources changed are taken from the sources, all others from that first one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from ci.api_types import SCALARS, go_name, read_types
from ci.release_sources import Sources

Words = dict[str, str]
Table = dict[str, dict[str, dict[str, str]]]
"""Group -> ``v1.Pod`` -> field -> line."""

_PACKAGES: Mapping[str, tuple[str, str]] = {
    "meta": ("apimachinery", "pkg/apis/meta"),
    "apiextensions": ("apiextensions-apiserver", "pkg/apis/apiextensions"),
    "apiregistration": ("kube-aggregator", "pkg/apis/apiregistration"),
}
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^\t(?:(\w+)\s+)?([*\[\]\w.]+)\s+`[^`]*json:"([^"]*)"')
_ENUM = re.compile(r"^// \+enum\n(?://.*\n)*type (\w+) string", re.MULTILINE)
_MEMBER = re.compile(r'^\t?(?:const )?\w+ +(\w+) += +"([^"]*)"', re.MULTILINE)
_CAST = re.compile(r'^\t?(?:const )?\w+ += +(\w+)\("([^"]*)"\)', re.MULTILINE)
_DEFAULT = re.compile(r"^\t// \+default=(.*)$")
_GATES = re.compile(r"^\t// ?\+featureGate=(.*)$")


class GoField:
    """A field as its Go struct has it."""

    def __init__(self, go: str, options: str, default: str, gates: tuple[str, ...]) -> None:
        self.pointer = go.startswith("*")
        self.go = go.lstrip("*")
        self.omitted = "omitempty" in options or "omitzero" in options
        self.omitted_zero = "omitzero" in options
        self.default = default
        self.gates = gates
        self.within = ""

    def of(self, embedded: str) -> GoField:
        """Return the field as a struct has it that embeds its own."""
        found = copy(self)
        found.within = f"{embedded}.{self.within}".rstrip(".")
        return found


class Published:
    """The OpenAPI files of a checkout, asked as ``ci.api_types.Server`` is."""

    def __init__(self, folder: Path) -> None:
        self._files = {}
        for file in sorted(folder.glob("*_openapi.json")):
            path = file.name.removesuffix("_openapi.json").replace("__", "/")
            self._files[path] = file

    def ask(self, _method: str, path: str) -> Any:
        """Return the index, or a document."""
        if path == "/openapi/v3":
            return {"paths": dict.fromkeys(self._files)}
        return json.loads(self._files[path.removeprefix("/openapi/v3/")].read_text(encoding="utf-8"))


def go_enums(sources: Sources, group: str, version: str) -> dict[str, str]:
    """Type -> its values by ``|``, of the types that are marked as enums."""
    module, path = _PACKAGES.get(group, ("api", group))
    files = sorted((sources.module(module) / path / version).glob("*types*.go"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    values: dict[str, set[str]] = {name: set() for name in _ENUM.findall(text)}
    for name, value in (*_MEMBER.findall(text), *_CAST.findall(text)):
        if name in values:
            values[name].add(value)
    return {name: "|".join(sorted(found)).replace(" ", "%20") for name, found in values.items()}


def go_fields(sources: Sources, group: str, version: str) -> dict[str, dict[str, GoField]]:
    """Struct -> JSON name -> field, of a group's version; fields of embedded structs with those of their holder."""
    module, path = _PACKAGES.get(group, ("api", group))
    found: dict[str, dict[str, GoField]] = {}
    embedded: dict[str, list[str]] = {}
    for file in sorted((sources.module(module) / path / version).glob("*types*.go")):
        text = file.read_text(encoding="utf-8")
        for name, body in _STRUCT.findall(text):
            found[name], embedded[name] = _struct_fields(body, version)
    return {name: _whole(name, found, embedded) for name in found}


def _whole(name: str, found: Mapping[str, dict[str, GoField]], embedded: Mapping[str, list[str]]) -> dict[str, GoField]:
    """Return the fields of a struct, with those of the ones that it embeds."""
    taken = {}
    for other in embedded[name]:
        if other in found:
            taken.update({field: known.of(other) for field, known in _whole(other, found, embedded).items()})
    return {**taken, **found[name]}


def _struct_fields(body: str, version: str) -> tuple[dict[str, GoField], list[str]]:
    fields, embedded = {}, []
    default, gates = "", ()
    for line in body.splitlines():
        if match := _DEFAULT.match(line):
            default = match[1].strip()
        elif match := _GATES.match(line):
            gates = (*gates, *re.split(r"//|\+", match[1])[0].replace(" ", "").split(","))
        elif match := _FIELD.match(line):
            _, go, tag = match.groups()
            name, _, options = tag.partition(",")
            if not name and tag != "-":
                embedded.append(go.rpartition(".")[2].lstrip("*"))
            elif name and name != "-":
                fields[name] = GoField(go, options, default, gates)
            default, gates = "", ()
    return fields, embedded


def derived(sources: Sources) -> tuple[dict[str, dict[str, Words]], dict[str, list[str]]]:
    """Struct -> field -> its words, and gate -> the fields that are dropped while it is off."""
    types = read_types(Published(sources.module("kubernetes") / "api/openapi-spec/v3"))  # type: ignore[arg-type]
    packages: dict[tuple[str, str], dict[str, dict[str, GoField]]] = {}
    decoder = _names_embedded(sources)
    enums: dict[tuple[str, str], dict[str, str]] = {("core", "v1"): go_enums(sources, "core", "v1")}
    found: dict[str, dict[str, Words]] = {}
    gated: dict[str, list[str]] = {}
    for ref, struct in sorted(types.items()):
        group, _, rest = ref.partition("/")
        version, _, name = rest.partition(".")
        if (group, version) not in packages:
            packages[group, version] = go_fields(sources, group, version)
            enums[group, version] = go_enums(sources, group, version)
        go = packages[group, version].get(name, {})
        kinds = [f"{kind['group']}/{kind['version']}/{kind['kind']}" for kind in struct["kinds"]]
        head = {"atomic": ""} if struct["atomic"] else {}
        if len(kinds) == 1:
            head["kind"] = kinds[0]
        found[ref] = {"": head} if head else {}
        for field, known in struct["fields"].items():
            found[ref][field] = dict(
                _words(known, go.get(field), version, is_root=bool(struct["kinds"]), name=field, names_embedded=decoder)
            )
            if enum := _enum(go.get(field), enums[group, version], enums["core", "v1"]):
                found[ref][field]["enum"] = enum
            for gate in go[field].gates if field in go else ():
                gated.setdefault(gate, []).append(f"{ref}.{field}")
    return found, gated


# Complex: one branch for each word, in the order in which a row has them.
def _words(  # noqa: C901
    known: Mapping[str, Any], go: GoField | None, version: str, *, is_root: bool, name: str, names_embedded: bool
) -> Iterator[tuple[str, str]]:
    type_ = known["type"]
    is_struct = type_ not in SCALARS and type_[:2] not in ("[]", "{}")
    shown = ""
    if go is not None and not (is_root and name in ("kind", "apiVersion", "items")):
        shown = _shown(type_, go, is_struct)
        if shown == "ptr" or (type_ == "quantity" and not shown):
            yield "ptr", ""
    yield "type", type_
    if "default" in known and not (shown == "keep" and _is_zero(known["default"])):
        yield "oadefault", _text(known["default"])
    if shown in ("keep", "null"):
        yield shown, ""
    if known["required"]:
        yield "req", ""
    if go is not None and (told := _go_type(go.go, version)) != go_name(type_):
        yield "go", told
    if go is not None and go.within and names_embedded:
        yield "in", go.within
    if known["list"]:
        yield "list", known["list"]
    if known["atomic"]:
        yield "atomic", ""
    if known["patch"]:
        yield "patch", known["patch"]
    if go is not None and go.default:
        yield "default", _default(go.default)


def _names_embedded(sources: Sources) -> bool:
    """Return whether the decoder names embedded structs in its paths, as sigs.k8s.io/json does since July 2025."""
    found = re.search(r"sigs\.k8s\.io/json v0\.0\.0-(\d{8})", sources.text("kubernetes", "go.mod"))
    return found is not None and found[1] >= "20250730"


def _enum(go: GoField | None, own: Mapping[str, str], core: Mapping[str, str]) -> str:
    if go is None:
        return ""
    package, _, name = go.go.removeprefix("[]").lstrip("*").rpartition(".")
    return (core if package in ("v1", "corev1") else {} if package else own).get(name, "")


def _shown(type_: str, go: GoField, is_struct: bool) -> str:
    """Return what an empty field shows: ``keep``, ``null``, nothing; ``ptr`` where empty is not absent."""
    if go.pointer:
        scalar = not is_struct and type_[:2] not in ("[]", "{}") and type_ not in ("any", "raw", "time", "microtime")
        return "null" if not go.omitted else "ptr" if scalar else ""
    if type_[:2] in ("[]", "{}") or type_ == "any":
        return "" if go.omitted else "null"
    if is_struct or type_ in ("time", "microtime", "raw"):  # encoding/json leaves out no struct without omitzero
        return "" if go.omitted_zero else "keep" if is_struct else "null"
    return "" if go.omitted else "keep"


def _go_type(go: str, version: str) -> str:
    """Return a Go type as the decoder prints it: types of the package itself bear its version."""
    head, _, name = re.fullmatch(r"((?:\*|\[\]|map\[[\w.]+\])*)()([\w.]+)", go).groups()  # type: ignore[union-attr]
    head = re.sub(r"map\[([A-Z]\w*)\]", rf"map[{version}.\1]", head)
    name = {"byte": "uint8"}.get(name, name)
    package, _, bare = name.rpartition(".")
    if package:
        return head + f"{_version_of(package)}.{bare}"
    return head + (f"{version}.{name}" if name[:1].isupper() else name)


def _version_of(package: str) -> str:
    """``v1alpha3`` of the package that is imported as ``schedulingv1alpha3``, which is its name in messages."""
    found = re.search(r"v\d+(alpha\d+|beta\d+)?$", package)
    return found[0] if found else package


def _default(text: str) -> str:
    try:
        return _text(json.loads(text))
    except json.JSONDecodeError:
        return json.dumps(text)


def _is_zero(value: Any) -> bool:
    return all(map(_is_zero, value.values())) if isinstance(value, dict) else value in ("", 0, False, None, [])


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


_ORDER = (
    "type",
    "ptr",
    "oadefault",
    "keep",
    "null",
    "req",
    "go",
    "in",
    "list",
    "atomic",
    "patch",
    "enum",
    "default",
    "kind",
)


def words_of(line: str) -> Words:
    """Return the words of a line by their keys; ``type`` is the first, but for a struct's own line."""
    first, *rest = line.split()
    words = [first, *rest]
    found: Words = {}
    if not line.startswith(("kind=", "atomic")):
        found["type"], words = first, rest
    for word in words:
        key, _, value = word.partition("=")
        found[key] = value
    return found


def line_of(words: Mapping[str, str]) -> str:
    """Return the line of words, in the order that all lines have."""
    shown = []
    for key in _ORDER:
        if key == "type" and key in words:
            shown.append(words[key])
        elif key in words:
            shown.append(f"{key}={words[key]}" if words[key] or key in ("kind",) else key)
    return " ".join(shown)


def carried(measured: Table, before: Mapping[str, Any], after: Mapping[str, Any]) -> Table:
    """Return the lines of a later release: what its sources changed, on what was measured of the first."""
    found: Table = {}
    for ref, fields in after.items():
        group, _, name = ref.partition("/")
        lines = {}
        for field, words in fields.items():
            known = measured.get(group, {}).get(name, {}).get(field)
            former = before.get(ref, {}).get(field)
            if known is None or former is None:
                merged = words
            else:
                merged = words_of(known)
                for key in {*former, *words}:
                    if former.get(key) != words.get(key):
                        merged.pop(key, None)
                        if key in words:
                            merged[key] = words[key]
            lines[field] = line_of(merged)
        found.setdefault(group, {})[name] = lines
    return found


def difference(base: Mapping[str, Any], full: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes ``full`` of ``base``: new and other members, None for those that are gone."""
    found: dict[str, Any] = {name: None for name in base if name not in full}
    for name, value in full.items():
        former = base.get(name)
        if not isinstance(value, dict) or not isinstance(former, dict):
            if former != value:
                found[name] = value
        elif below := difference(former, value):
            found[name] = below
    return dict(sorted(found.items()))
