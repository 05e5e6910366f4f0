"""The names of extended resources: those that device plugins announce, and those that stand for a device class.

Source: IsExtendedResourceName of pkg/apis/core/v1/helper, IsDRAExtendedResourceName of pkg/scheduler/util.
"""

from __future__ import annotations

import re
from functools import lru_cache

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Before the name of a DeviceClass: a resource that every class has (KEP-5004)."""

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_KNOWN = 1024


@lru_cache(maxsize=_KNOWN)
def is_extended_resource(name: str) -> bool:
    """Return whether the name is ``domain/name`` outside Kubernetes' own domains: ``falcon.com/gpu``."""
    prefix, slash, rest = name.partition("/")
    if not slash or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    quota = f"requests.{prefix}"
    if not prefix or len(quota) > 253 or not _PREFIX.fullmatch(quota):
        return False
    return len(rest) <= 63 and _NAME.fullmatch(rest) is not None


def may_be_a_class(name: str) -> bool:
    """Return whether a device class may stand behind the resource."""
    return name.startswith(CLASS_PREFIX) or is_extended_resource(name)
