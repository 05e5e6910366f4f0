"""Times of a stack that ``--speed`` does not divide: those of Kubernetes and of components, in real seconds. Pure.

A scenario that weighs emulated times against one of them says so (``requires.unscaled``), and runs at speed 1 alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from mews.harness.scenario.stack import Stack


def seconds_of(stack: Stack) -> Mapping[str, float | None]:
    """Return the seconds of its default scheduler and of its systems, by their keys below ``stack``; None: by default
    those of Kubernetes."""
    parts = {"defaultScheduler": stack.default_scheduler, **stack.systems}
    return {key: value for name, options in parts.items() for key, value in _seconds(name, options)}


def _seconds(place: str, options: object) -> Iterator[tuple[str, float | None]]:
    if not isinstance(options, BaseModel):
        return
    for name, field in type(options).model_fields.items():
        value, key = getattr(options, name), f"{place}.{field.alias or name}"
        if isinstance(value, BaseModel):
            yield from _seconds(key, value)
        elif name.endswith("_s") and (value is None or isinstance(value, int | float)):
            yield key, value


def too_fast(stack: Stack, keys: tuple[str, ...], speed: float) -> str | None:
    """Return why a run at that speed says nothing; None where it does."""
    if speed == 1 or not keys:
        return None
    known = seconds_of(stack)
    given = (key if known[key] is None else f"{key} ({known[key]:g} s)" for key in keys)
    return f"needs --speed 1: no speed divides stack.{' and stack.'.join(given)}; this run has {speed:g}"
