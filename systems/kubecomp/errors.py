"""Errors of KubeComp.

::

    KubeCompError
    └── ConfigError     the configuration file is wrong: file, place, value, what is allowed
"""

from __future__ import annotations


class KubeCompError(Exception):
    """Anything KubeComp itself refuses."""


class KubeCompConfigError(KubeCompError):
    """One line naming the file, the place in it, the value and what is allowed."""
