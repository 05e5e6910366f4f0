"""Driver releases: which CUDA and NVML version belongs to a branch. Source: NVIDIA's CUDA release notes, the table of
driver versions. What a branch names and deprecates in ``nvidia-smi -q`` stands in ``c/smi/layout.c``."""

from __future__ import annotations

import re

CUDA_OF_BRANCH = {
    520: 11080, 525: 12000, 530: 12010, 535: 12020, 545: 12030, 550: 12040, 555: 12050, 560: 12060,
    565: 12070, 570: 12080, 575: 12090, 580: 13000, 590: 13010, 595: 13020,
}  # fmt: skip
"""Branch -> CUDA version as NVML writes it: 12080 is 12.8."""

DEFAULT_RELEASE = "570.86.15"

RELEASE = re.compile(rf"({'|'.join(map(str, CUDA_OF_BRANCH))})\.[0-9]{{1,3}}(\.[0-9]{{1,3}})?")
KNOWN = f"a release such as {DEFAULT_RELEASE} of a branch of {', '.join(map(str, CUDA_OF_BRANCH))}"


def branch_of(release: str) -> int:
    """Return the branch of a release such as ``570.86.15``.

    Raises ValueError naming the branches that there are.
    """
    found = RELEASE.fullmatch(release)
    if found is None:
        raise ValueError(f"driver {release!r}: must be {KNOWN}")
    return int(found[1])


def is_late(release: str) -> bool:
    """Return whether a release has what the last ones of 580 brought, and 590.48 had not (public captures of 580.105,
    580.173, 590.48 and 595.80). Raises ValueError."""
    branch, number = branch_of(release), int(release.split(".")[1])
    return branch >= 595 or (branch == 580 and number >= 126)


def cuda_of(release: str) -> int:
    """Return the CUDA version of a release. Raises ValueError."""
    return CUDA_OF_BRANCH[branch_of(release)]


def nvml_of(release: str) -> str:
    """NVML's version: CUDA's, then the driver's. Raises ValueError."""
    return f"{cuda_of(release) // 1000}.{release}"
