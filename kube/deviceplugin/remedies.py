"""What a device plugin is told of the GPUs of its node that somebody remedies: an annotation of the Node.

``remediation.mews.dev/gpus`` has one writer, whoever watches the node's GPUs: which of them are broken and withheld,
and how many times each was mended. A plugin announces none that is withheld, and what it held against a GPU itself
counts no more once the GPU was mended again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object, annotations_of

GPUS = "remediation.mews.dev/gpus"


def withheld_gpus(node: Object | None) -> frozenset[str]:
    """Return the UUIDs of those that are broken, or being mended, or could not be."""
    return frozenset(read_gpus(node, "gpus"))


def mended_gpus(node: Object | None) -> dict[str, int]:
    """UUID -> the number of the last incident that was mended."""
    return {uuid: count for uuid, count in read_gpus(node, "mended").items() if isinstance(count, int)}


def newly_mended(before: Mapping[str, int] | None, after: Mapping[str, int]) -> frozenset[str]:
    """Return the UUIDs of those that were mended since; at the first look (None) all that ever were, for what broke
    again is withheld."""
    return frozenset(uuid for uuid, number in after.items() if (before or {}).get(uuid) != number)


def read_gpus(node: Object | None, part: str) -> Mapping[str, Any]:
    """Return a part of the annotation; {} where it cannot be read."""
    try:
        found = json.loads(annotations_of(node or {"metadata": {}}).get(GPUS, "{}"))
    except ValueError:
        return {}
    rows = found.get(part) if isinstance(found, dict) else None
    return rows if isinstance(rows, dict) else {}
