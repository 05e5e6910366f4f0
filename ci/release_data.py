"""Makes the folder of a release of Kubernetes, ``kube/releases/MINOR``, from the Go modules that upstream publishes.

    python -m ci.release_data v1.36.3 1.34

writes what differs from the base, the release 1.34; of the first release, which has no base, ``ci/api_types.py`` wrote
before what a running server showed. It reads k8s.io/kubernetes and its staging modules of that version in the module
cache (``go mod download k8s.io/kubernetes@v1.36.3 k8s.io/api@v0.36.3 …``). Nothing is built, no server runs.
"""

# A tool for developers: it prints what it wrote.
# ruff: noqa: T201

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ci.printed_columns import columns
from ci.release_sources import Sources
from ci.release_types import Table, carried, derived, difference
from ci.wire_numbers import OUT as WIRE
from ci.wire_numbers import lines_of
from mews.kube.releases.release_data import merge, renamed_lines

OUT = Path(__file__).parent.parent / "kube" / "releases"
_GATE_FILES = (
    ("kubernetes", "pkg/features/kube_features.go"),
    ("apiserver", "pkg/features/kube_features.go"),
    ("apiextensions-apiserver", "pkg/features/kube_features.go"),
    ("client-go", "features/known_features.go"),
    ("component-base", "logs/api/v1/kube_features.go"),
    ("component-base", "metrics/features/kube_features.go"),
    ("component-base", "zpages/features/kube_features.go"),
    ("controller-manager", "pkg/features/kube_features.go"),
)
_CONSTANT = re.compile(r'^\t(\w+)\s+(?:featuregate\.)?Feature\s*=\s*"(\w+)"', re.MULTILINE)
_GATE = re.compile(r"^\t+(?:\w+\.)?(\w+): \{\n((?:\t+(?:\{Version.*|//.*)?\n)+)", re.MULTILINE)
_UNVERSIONED = re.compile(r"^\t(\w+): +\{Default: (\w+), PreRelease: (\w+)(?:, LockToDefault: (\w+))?\}", re.MULTILINE)
"""As client-go wrote its gates up to 1.34: as of that release."""
_SPEC = re.compile(
    r'\{Version: version\.MustParse\("1\.(\d+)"\), Default: (\w+), PreRelease: (?:featuregate\.)?(\w*)'
    r"(?:, LockToDefault: (\w+))?"
)


def gates(sources: Sources) -> dict[str, str]:
    """``STAGE STATE [locked]`` -> names of the gates, of the last spec that is not above the release."""
    found = defaultdict(list)
    for name, words in sorted(set(_gates(sources))):
        found[words].append(name)
    return {words: " ".join(members) for words, members in sorted(found.items())}


def _gates(sources: Sources) -> Iterator[tuple[str, str]]:
    for module, path in _GATE_FILES:
        text = sources.text(module, path)
        names = dict(_CONSTANT.findall(text))
        for constant, body in _GATE.findall(text):
            specs = [spec for spec in _SPEC.findall(body) if int(spec[0]) <= sources.minor]
            if specs and constant in names:
                yield names[constant], _words(*specs[-1][1:])
        for constant, *spec in _UNVERSIONED.findall(text):
            yield names[constant], _words(*spec)


def _words(default: str, stage: str, locked: str) -> str:
    words = [stage.lower() or "ga", "on" if default == "true" else "off"]
    return " ".join(words + ["locked"] * (locked == "true"))


_UNMARKED: Mapping[str, str] = {
    "ContainerStopSignals": "core/v1.Lifecycle.stopSignal",
    "DeploymentReplicaSetTerminatingReplicas": "apps/v1.DeploymentStatus.terminatingReplicas "
    "apps/v1.ReplicaSetStatus.terminatingReplicas",
    "ImageVolume": "core/v1.Volume.image",
    "MaxUnavailableStatefulSet": "apps/v1.RollingUpdateStatefulSetStrategy.maxUnavailable",
}
"""Fields that the registry drops (dropDisabledFields of pkg/api/pod and pkg/registry) and the types do not mark."""
_KEPT = frozenset(
    f"resource/{version}.{field}"
    for version in ("v1", "v1beta1", "v1beta2")
    for field in (
        "DeviceConstraint.distinctAttribute",
        "DeviceRequest.tolerations",
        "DeviceSubRequest.tolerations",
        "ExactDeviceRequest.tolerations",
    )
) | {"core/v1.ContainerStatus.allocatedResources"}
"""Fields that the types mark and that nothing drops: of DRADeviceTaints only the taints of slices are dropped, and
pkg/api/pod does not know the gate InPlacePodVerticalScalingAllocatedStatus."""


def fields_of(gated: Mapping[str, Iterable[str]], known: Mapping[str, str]) -> dict[str, str]:
    """Gate -> the fields that are dropped while it is off, of those that can be off."""
    free = {name for words, members in known.items() if "on locked" not in words for name in members.split()}
    found: dict[str, set[str]] = {name: set(refs) - _KEPT for name, refs in gated.items()}
    found["PodCertificateRequest"] = found.pop("PodCertificateProjection", set())
    for name, refs in _UNMARKED.items():
        found.setdefault(name, set()).update(refs.split())
    return {name: " ".join(sorted(refs)) for name, refs in sorted(found.items()) if name in free and refs}


# Which kinds there are


_IMPORT = re.compile(r'^\t(\w+) "k8s\.io/(?:api|kubernetes/pkg/apis)/([\w/]+)"', re.MULTILINE)
_LISTED = re.compile(
    r"^\t(\w*(?:nabledByDefault|StableAPI\w*)) = \[\]schema\.GroupVersion\{\n(.*?)^\t\}", re.M | re.DOTALL
)
_ALWAYS = ("v1", "apiregistration.k8s.io/v1", "apiextensions.k8s.io/v1")
_GATED_KIND = re.compile(
    r'if resource [:=]+ "(\w+)";.*?ResourceEnabled\((\w+)\.SchemeGroupVersion\S*\).*\{\n'
    r"\t+if utilfeature\.DefaultFeatureGate\.Enabled\(features\.(\w+)\)"
)


def _imports(text: str) -> dict[str, str]:
    return dict(_IMPORT.findall(text))


def _group_names(sources: Sources) -> dict[str, str]:
    """``admissionregistration/v1`` -> ``admissionregistration.k8s.io/v1``, from the packages' own register.go."""
    found = {}
    for file in sources.module("api").glob("*/*/register.go"):
        name = re.search(r'const GroupName = "([^"]*)"', file.read_text(encoding="utf-8"))
        group = name[1] if name else ""
        found[f"{file.parent.parent.name}/{file.parent.name}"] = f"{group}/{file.parent.name}".lstrip("/")
    return found


def served(sources: Sources) -> list[str]:
    """Return the versions that are served by default (pkg/controlplane/instance.go)."""
    text = sources.text("kubernetes", "pkg/controlplane/instance.go")
    aliases, names = _imports(text), _group_names(sources)
    found = {*_ALWAYS}
    for list_name, body in _LISTED.findall(text):
        if "DisabledByDefault" not in list_name:
            found |= {names[aliases[alias]] for alias in re.findall(r"(\w+)\.SchemeGroupVersion,", body)}
    return sorted(found)


def groups(sources: Sources) -> list[str]:
    """Return the groups in the order in which discovery lists them."""
    file = sources.module("kubernetes") / "api/discovery/aggregated_v2.json"
    return ["", *(item["metadata"]["name"] for item in json.loads(file.read_text(encoding="utf-8"))["items"])]


def gated_kinds(sources: Sources) -> dict[str, str]:
    """``certificates.k8s.io/v1/clustertrustbundles`` -> the gate without which it is not served (pkg/registry)."""
    names, found = _group_names(sources), {}
    for file in sorted((sources.module("kubernetes") / "pkg/registry").glob("*/rest/*.go")):
        text = file.read_text(encoding="utf-8")
        aliases = _imports(text)
        for plural, alias, gate in _GATED_KIND.findall(text):
            if alias in aliases:
                found[f"{names[aliases[alias]]}/{plural}"] = gate
    return found


def kinds(sources: Sources) -> dict[str, dict[str, str]]:
    """Group and version -> plural -> its words, of all that the release can serve: api/discovery of the checkout."""
    folder = sources.module("kubernetes") / "api/discovery"
    gates_of = gated_kinds(sources)
    found: dict[str, dict[str, str]] = {}
    for file in [folder / "api__v1.json", *sorted(folder.glob("apis__*__*.json"))]:
        listed = json.loads(file.read_text(encoding="utf-8"))
        version, members = listed["groupVersion"], listed["resources"]
        subresources = defaultdict(list)
        for member in members:
            plural, _, sub = member["name"].partition("/")
            if sub:
                owner = f"{member.get('group', '')}/{member.get('version', '')}".strip("/")
                kind = f"{owner}/{member['kind']}" if owner else member["kind"]
                subresources[plural].append(f"sub={sub}:{kind}:{','.join(member['verbs'])}")
        found[version] = {
            member["name"]: _kind_words(version, member, subresources[member["name"]], gates_of)
            for member in members
            if "/" not in member["name"]
        }
    return found


def _kind_words(version: str, member: Mapping[str, Any], subresources: list[str], gates_of: Mapping[str, str]) -> str:
    words = [member["kind"], *(() if member["namespaced"] else ("cluster",))]
    for key in ("shortNames", "categories"):
        if member.get(key):
            words.append(f"{key}={','.join(member[key])}")
    if len(member["verbs"]) != 8:
        words.append(f"verbs={','.join(member['verbs'])}")
    if (gate := gates_of.get(f"{version}/{member['name']}")) is not None:
        words.append(f"gate={gate}")
    stored = _stored_version(version, member)
    if stored:
        words.append(f"stored={stored}")
    return " ".join(words + sorted(subresources))


def _stored_version(version: str, member: Mapping[str, Any]) -> str:
    """Return where it is another: discovery tells it as a hash of group, version and kind."""
    group, _, own = version.rpartition("/")
    for candidate in (own, *(f"v{major}{stage}" for major in (1, 2) for stage in _STAGES)):
        text = f"{group}/{candidate}/{member['kind']}"
        if base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode() == member.get("storageVersionHash"):
            return "" if candidate == own else candidate
    return ""


_STAGES = ("", "beta1", "beta2", "beta3", "alpha1", "alpha2", "alpha3")


# Files


def write(folder: Path, name: str, value: Any) -> None:
    """A file of the folder, a fact a line; nothing where there is nothing to say."""
    if not value:
        (folder / name).unlink(missing_ok=True)
        return
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    (folder / name).write_text(text, encoding="utf-8")
    print(f"{folder.name}/{name}: {len(text.encode())} bytes")


def shared(types: Table) -> dict[str, Any]:
    """Types of a version that are those of another one of the same group, but for the version: that one's name."""
    found: dict[str, Any] = {}
    for group, structs in types.items():
        found[group] = {}
        for name, lines in structs.items():
            version, _, bare = name.partition(".")
            twins = (other for other in _twins(version) if f"{other}.{bare}" in structs)
            alike = (twin for twin in twins if renamed_lines(group, structs[f"{twin}.{bare}"], twin, version) == lines)
            found[group][name] = next(alike, lines)
    return found


def _twins(version: str) -> tuple[str, ...]:
    return (
        () if not re.search("alpha|beta", version) else ("v1", "v1beta2", "v1beta1")[: 1 if "beta2" in version else 2]
    )


FIRST = "v1.34.2"
"""Of which ``ci/api_types.py`` asked a running server."""


class Full:
    """All that a release's folder says, with its base: types and numbers on the wire by group."""

    def __init__(self, name: str) -> None:
        folder = OUT / name
        base = _json(folder / "release.json").get("base", "")
        below = Full(base) if base else None
        self.written = merge(below.written if below else {}, _files(folder / "types"))
        self.types = {group: _expanded(group, structs) for group, structs in self.written.items()}
        self.fields = merge(below.fields if below else {}, _json(folder / "fields.json"))
        self.kinds = merge(below.kinds if below else {}, _json(folder / "kinds.json"))
        self.columns = merge(below.columns if below else {}, _json(folder / "columns.json"))
        self.wire = merge(below.wire if below else _json(WIRE), _json(folder / "wire.json"))


def _expanded(group: str, structs: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return them with the lines of types that are written as another version's."""
    found = {}
    for name, lines in structs.items():
        version, _, bare = name.partition(".")
        found[name] = (
            renamed_lines(group, structs[f"{lines}.{bare}"], lines, version) if isinstance(lines, str) else lines
        )
    return found


def _files(folder: Path) -> Table:
    return {file.stem: _json(file) for file in sorted(folder.glob("*.json"))}


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def main(version: str, base: str) -> None:
    """Write the folder."""
    sources = Sources(version)
    folder = OUT / f"1.{sources.minor}"
    folder.mkdir(exist_ok=True)
    release = {
        "version": version,
        **({"base": base} if base else {}),
        "groups": groups(sources),
        "served": served(sources),
    }
    write(folder, "release.json", release)
    known = gates(sources)
    write(folder, "gates.json", known)
    types, gated = derived(sources)
    below = Full(base) if base else Full("")
    write(folder, "fields.json", difference(below.fields, fields_of(gated, known)))
    known_kinds = kinds(sources)
    write(folder, "kinds.json", difference(below.kinds, known_kinds))
    write(folder, "columns.json", difference(below.columns, columns(sources, known_kinds)))
    measured = Full(FIRST.rpartition(".")[0][1:])
    full = carried(measured.types, derived(Sources(FIRST))[0], types)
    lines = lines_of(
        sources.protobuf(), {f"{group}/{name}": known for group in full for name, known in full[group].items()}
    )
    if base:
        for stale in (folder / "types").glob("*.json"):
            stale.unlink()
        for group, diff in difference(below.written, shared(full)).items():
            write(folder, f"types/{group}.json", diff)
    else:  # what was measured stays; kinds that are not served by default are from the sources
        for group, structs in shared(full).items():
            write(folder, f"types/{group}.json", dict(sorted({**structs, **measured.types.get(group, {})}.items())))
    write(folder, "wire.json", {ref: line for ref, line in lines.items() if below.wire.get(ref) != line})


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or not re.fullmatch(r"v1\.\d+\.\d+", sys.argv[1]):
        sys.exit("usage: python -m ci.release_data v1.MINOR.PATCH [BASE]")
    main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "")
