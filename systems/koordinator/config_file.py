"""What the values of a configuration file must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mews.kube.runtimehook.port import HookPolicy
from mews.systems.koordinator.errors import KoordinatorConfigError
from mews.systems.koordinator.policy import CHOICES

_Check = tuple[Callable[[Any], bool], str]


def _is_seconds(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 < value < float("inf")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) and each for each in value)


def _one_of(allowed: tuple[str, ...]) -> _Check:
    return (lambda value: isinstance(value, str) and value in allowed), f"one of {', '.join(allowed)}"


_SECONDS: _Check = _is_seconds, "seconds above 0"
_TEXT: _Check = _is_text, "a text"
_TEXTS: _Check = _are_texts, "a list of texts"
_NAMED_TEXTS: _Check = (
    lambda value: isinstance(value, Mapping) and all(_is_text(each) for pair in value.items() for each in pair),
    "a mapping of texts to texts",
)
_MOUNTS: _Check = (
    lambda value: isinstance(value, list | tuple) and all(isinstance(each, Mapping) for each in value),
    "a list of mappings",
)
_FLAG: _Check = (lambda value: isinstance(value, bool)), "true or false"

_CHECKS: Mapping[str, _Check] = {
    "device_choice": _one_of(CHOICES),
    "hook_failure_policy": _one_of(tuple(HookPolicy)),
    **dict.fromkeys(("gang_wait_s", "report_s", "poll_s"), _SECONDS),
    **dict.fromkeys(("scheduler_name", "namespace", "scheduler_account", "scheduler", "nvml", "host_files"), _TEXT),
    **dict.fromkeys(("nodes", "adopt"), _TEXTS),
    "envs": _NAMED_TEXTS,
    "mounts": _MOUNTS,
    **dict.fromkeys(("device_plugin", "leader_elect", "seed_names", "adopt_env"), _FLAG),
}


def check_values(given: Mapping[str, Any], where: str) -> None:
    """Raises KoordinatorConfigError for a value that its field cannot have, one line."""
    for name, value in given.items():
        fits, allowed = _CHECKS.get(name, (lambda _: True, ""))
        if not fits(value):
            raise KoordinatorConfigError(f"{where}: {name}: {value!r}: must be {allowed}")
