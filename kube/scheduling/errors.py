"""Errors of the scheduler.

::

    SchedulingError          what a user got wrong about the scheduler
    ├── BadPlugin            a ``module:callable`` that cannot be had, or an object that is no plugin
    └── BadProfile           a profile or configuration that contradicts itself
"""

from __future__ import annotations


class SchedulingError(Exception):
    """Something about the scheduler's configuration is wrong."""


class BadPlugin(SchedulingError):
    """A plugin that cannot be loaded, or is none."""


class BadProfile(SchedulingError):
    """Profiles that contradict themselves or each other."""
