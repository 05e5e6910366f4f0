"""What the server warns of where volumes put several things at one path (pkg/api/pod/warnings.go)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import refusals

PlacedFile = tuple[str, str]
"""A path, and what puts a file there."""


def overlap_warnings(spec: Part) -> Iterator[str]:
    """Yield the warnings of all volumes of a pod."""
    for volume in items(spec, "volumes"):
        for name, shown in _NAMED:
            part = volume.get(name)
            if part is not None and part.get("items"):
                title = f"{shown[0]} {refusals.shown(part.get(shown[1], ''))}" if shown[1] else shown[0]
                yield from _overlaps(volume, title, _files(part, ""))
        if volume.get("projected") is not None:
            yield from _projected(volume)


_NAMED = (
    ("configMap", ("ConfigMap", "name")),
    ("secret", ("Secret", "secretName")),
    ("downwardAPI", ("DownwardAPI", "")),
)


def _projected(volume: Part) -> Iterator[str]:
    files: list[PlacedFile] = []
    for source in items(volume["projected"], "sources"):
        if not any(value is not None for value in source.values()):
            yield f"volume {refusals.shown(volume.get('name', ''))} (Projected) has no sources provided"
            continue
        files += _source_files(source)
    yield from _overlaps(volume, "Projected", files)


def _source_files(source: Part) -> list[PlacedFile]:
    for name, title in (("configMap", "ConfigMap"), ("secret", "Secret")):
        part = source.get(name)
        if part is not None and part.get("items"):
            return _files(part, f"{title} {refusals.shown(part.get('name', ''))}")
    if part_of(source, "downwardAPI").get("items"):
        return _files(source["downwardAPI"], "DownwardAPI")
    token, bundle = source.get("serviceAccountToken"), source.get("clusterTrustBundle")
    if token is not None:
        return [(token.get("path", ""), "ServiceAccountToken")]
    if bundle is not None:
        name = bundle["name"] if bundle.get("name") is not None else bundle.get("signerName", "")
        return [(bundle.get("path", ""), f"ClusterTrustBundle {refusals.shown(name)}")]
    return []


def _files(part: Part, source: str) -> list[PlacedFile]:
    return [(item.get("path", ""), source) for item in items(part, "items")]


def _overlaps(volume: Part, title: str, files: Sequence[PlacedFile]) -> Iterator[str]:
    known: list[PlacedFile] = []
    for path, source in files:
        placed = (path.rstrip("/"), source)
        for other in known:
            if placed[0] and other[0] and _is_within(placed[0], other[0]):
                name = refusals.shown(volume.get("name", ""))
                yield f"volume {name} ({title}): overlapping paths: {_shown(placed)} with {_shown(other)}"
        known.append(placed)


def _is_within(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _shown(placed: PlacedFile) -> str:
    path, source = placed
    return f"{refusals.shown(path)} ({source})" if source else refusals.shown(path)
