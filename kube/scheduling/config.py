"""What a scheduler is made of: its profiles and their plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct

from mews.kube.scheduling.errors import PluginDefinitionError, ProfileError
from mews.kube.scheduling.framework import PluginFactory


class TieBreak(Enum):
    """How one of several best nodes is picked."""

    RANDOM = "random"
    """By the scheduler's own stream of chance."""
    BY_NAME = "by-name"
    """The first in order of name."""


class SchedulerProfile(Struct, frozen=True):
    """The scheduler that pods name in ``spec.schedulerName``.

    ``plugins`` take part in every point they have a method for, in this order. ``score_weights``: None lets every
    Score plugin count with its own ``weight`` (1 where it has none); a mapping lets only those it names score, with
    these weights. ``percentage_of_nodes_to_score`` 0 means adaptive (contract apiserver.md section 8).
    """

    scheduler_name: str
    plugins: tuple[PluginFactory, ...]
    score_weights: Mapping[str, int] | None = None
    ties: TieBreak = TieBreak.RANDOM
    percentage_of_nodes_to_score: int = 0


class SchedulerConfig(Struct, frozen=True):
    """Profiles that share one queue and one cache, and how the queue waits.

    ``instance`` ends the events' reportingInstance (``default-scheduler-<instance>``): the host's name in production.
    """

    profiles: tuple[SchedulerProfile, ...]
    instance: str = "mews"
    first_backoff_s: float = 1.0
    last_backoff_s: float = 10.0
    leftover_s: float = 300.0

    def __post_init__(self) -> None:
        names = [profile.scheduler_name for profile in self.profiles]
        if not names:
            raise ProfileError("profiles: at least one is needed")
        if len(set(names)) < len(names):
            raise ProfileError(f"profiles {names}: a scheduler name may appear once only")


def load_plugin(reference: str, arguments: Mapping[str, Any] = MappingProxyType({})) -> PluginFactory:
    """Return the plugin factory that ``module:callable`` names: called with the handle and ``arguments`` by keyword.

    Raises PluginDefinitionError, in one line, when there is no such thing.
    """
    factory = load_callable(reference, "the scheduler's handle")
    return lambda handle: factory(handle, **arguments)


def load_callable(reference: str, arguments: str) -> Callable[..., Any]:
    """Return what ``module:callable`` names; ``arguments`` says in words what it is called with.

    Raises PluginDefinitionError, in one line, when there is no such thing.
    """
    module_name, _, path = reference.partition(":")
    if not module_name or not path:
        raise PluginDefinitionError(f"plugin {reference!r}: write it as module:callable")
    try:
        target: Any = import_module(module_name)
    except ImportError as failed:
        raise PluginDefinitionError(
            f"plugin {reference!r}: module {module_name!r} cannot be imported: {failed}"
        ) from failed
    except Exception as failed:
        cause = f"{type(failed).__name__}: {' '.join(str(failed).split())}"
        raise PluginDefinitionError(
            f"plugin {reference!r}: module {module_name!r} cannot be imported: {cause}"
        ) from failed
    for part in path.split("."):
        if not hasattr(target, part):
            raise PluginDefinitionError(f"plugin {reference!r}: {module_name!r} has no {path!r}")
        target = getattr(target, part)
    if not callable(target):
        raise PluginDefinitionError(
            f"plugin {reference!r}: is a {type(target).__name__}; must be callable with {arguments}"
        )
    return cast(Callable[..., Any], target)
