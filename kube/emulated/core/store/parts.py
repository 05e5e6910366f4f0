"""Parts of kinds and packs by name: what the core must not know, and what is loaded with the first object it is for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any


@cache
def part(reference: str) -> Any:
    """Return what ``module:attribute`` names below ``kube.emulated``."""
    module, _, attribute = reference.partition(":")
    return attrgetter(attribute)(import_module(f"mews.kube.emulated.{module}"))
