"""Errors of the scheduler.

::

    SchedulingError          what a user got wrong about the scheduler
    ├── PluginDefinitionError            a ``module:callable`` that cannot be had, or an object that is no plugin
    └── ProfileError           a profile or configuration that contradicts itself
    Overtaken                someone else bound the pod first
"""

from __future__ import annotations

from mews.kube.api.objects import Object


class SchedulingError(Exception):
    """Something about the scheduler's configuration is wrong."""


class PluginDefinitionError(SchedulingError):
    """A plugin that cannot be loaded, or is none."""


class ProfileError(SchedulingError):
    """Profiles that contradict themselves or each other."""


class OvertakenError(Exception):
    """Someone else bound the pod while we were about to; ``pod`` is how the API has it."""

    def __init__(self, pod: Object) -> None:
        super().__init__("bound by someone else")
        self.pod = pod
