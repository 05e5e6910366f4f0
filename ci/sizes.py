"""Installed bytes of the package and of all its dependencies, base and extra ``cluster``: ``make sizes``.

Counted by the records of the distributions in this environment, without pip, setuptools and ``__pycache__``. Exits 1
above a bar. ``python -m ci.sizes FOLDER`` counts the files of another environment's site-packages instead.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path
from types import MappingProxyType

from packaging.requirements import Requirement

from mews.emulator.nvml import library
from mews.emulator.nvml.compile import PRODUCTS
from mews.harness.package import sources
from mews.project import DISTRIBUTION

BARS_MB: Mapping[str, float] = MappingProxyType({"base": 65.0, "cluster": 120.0})
"""What an installation may weigh, in 10^6 bytes."""
EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType({"base": (), "cluster": ("cluster",)})
_SHOWN = 12
_NOT_COUNTED = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "wheel")


def needed(extras: Collection[str]) -> list[Distribution]:
    """Return the installed distributions that ours leads to with those extras, itself left out.

    Raises PackageNotFoundError.
    """
    found: dict[str, Distribution] = {}
    asked = _wanted(distribution(DISTRIBUTION), extras)
    seen: set[str] = set()
    while asked:
        one = asked.pop()
        if str(one) not in seen:
            seen.add(str(one))
            found[one.name.lower().replace("_", "-")] = distribution(one.name)
            asked += _wanted(distribution(one.name), one.extras)
    return [held for name, held in sorted(found.items()) if name != DISTRIBUTION]


def _wanted(held: Distribution, extras: Collection[str]) -> list[Requirement]:
    wanted = [Requirement(line) for line in held.requires or ()]
    return [each for each in wanted if each.marker is None or _applies(each, extras)]


def _applies(requirement: Requirement, extras: Collection[str]) -> bool:
    marker = requirement.marker
    return marker is not None and any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def bytes_of(held: Distribution) -> int:
    """Return what its files weigh, compiled modules left out."""
    return _weight(Path(str(held.locate_file(file))) for file in held.files or ())


def our_bytes() -> int:
    """Return the package as a wheel installs it, with the compiled library."""
    compiled = library.library_path().parent
    return _weight([*(path for _, path in sources()), *(compiled / name for name in PRODUCTS)])


def folder_bytes(folder: Path) -> int:
    """Return what a site-packages folder weighs, but for the installer itself."""
    tops = [top for top in folder.iterdir() if top.name.partition("-")[0] not in _NOT_COUNTED]
    return _weight(path for top in tops for path in ([top] if top.is_file() else top.rglob("*")))


def _weight(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file() and "__pycache__" not in path.parts)


def sizes(kind: str) -> dict[str, int]:
    """Distribution -> bytes, the heaviest first."""
    found = {DISTRIBUTION: our_bytes(), **{held.name: bytes_of(held) for held in needed(EXTRAS[kind])}}
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def main(arguments: list[str]) -> int:
    """Print them; 1 above a bar."""
    if arguments:
        sys.stdout.write(f"{folder_bytes(Path(arguments[0])) / 1e6:.1f} MB\n")
        return 0
    above = False
    for kind, bar_mb in BARS_MB.items():
        found = sizes(kind)
        total_mb = sum(found.values()) / 1e6
        above = above or total_mb > bar_mb
        heaviest = ", ".join(f"{name} {weight / 1e6:.1f}" for name, weight in list(found.items())[:_SHOWN])
        sys.stdout.write(f"{kind}: {total_mb:.1f} MB of at most {bar_mb:g} ({len(found)} distributions): {heaviest}\n")
    return int(above)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
