"""Names a plugin may register (contract kubelet.md section 1; upstream v1helper.IsExtendedResourceName)."""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


def is_extended_resource(name: str) -> bool:
    """Whether the name is ``domain/name`` outside Kubernetes' own domains: ``falcon.com/gpu``."""
    prefix, slash, rest = name.partition("/")
    if not slash or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    quota = f"requests.{prefix}"
    if not prefix or len(quota) > 253 or not _PREFIX.fullmatch(quota):
        return False
    return len(rest) <= 63 and _NAME.fullmatch(rest) is not None
