"""Questions of authentication.k8s.io and authorization.k8s.io, which are answered and never stored."""

from __future__ import annotations

from mews.kube.emulated.core.checks.base import Rules

RULES = Rules(posts={"": "packs.access.reviews:review"})
