"""Lets objects that are alike have their parts in common: pods of one template differ in little.

For objects that are never changed, only replaced, as those of the store and of caches are.
"""

from __future__ import annotations

import marshal
from typing import Any

from mews.kube.api.objects import Object

_MOST = 4096
"""Parts that are known at once; the oldest are forgotten first."""

_NO_REFERENCES = 2
"""marshal's version whose bytes depend on the value alone."""

_SKIPPED = "managedFields"
"""Who writes them has them in common already."""

_PARTS: dict[bytes, Any] = {}


def share_parts(obj: Object) -> None:
    """Put parts that other objects have, too, in the place of equal ones. Equal to the byte, so that nobody sees it."""
    for section in obj.values():
        if type(section) is dict:
            _share_below(section)


def _share_below(value: Any) -> None:
    for key, item in value.items() if type(value) is dict else enumerate(value):
        if item and (type(item) is dict or type(item) is list) and key != _SKIPPED:
            value[key] = _shared(item)


def _shared(value: Any) -> Any:
    try:
        text = marshal.dumps(value, _NO_REFERENCES)
    except ValueError:  # something else than JSON
        return value
    known = _PARTS.get(text)
    if known is not None:
        return known
    _share_below(value)
    _PARTS[text] = value
    if len(_PARTS) > _MOST:
        del _PARTS[next(iter(_PARTS))]
    return value
