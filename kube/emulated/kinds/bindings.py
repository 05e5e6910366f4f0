"""Bindings, which are answered and never stored."""

from __future__ import annotations

from mews.kube.emulated.core.checks.base import Rules

RULES = Rules(posts={"": "kinds.pods.posts:post_binding"})
