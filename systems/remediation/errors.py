"""Errors of the remediation.

::

    RemediationError
    └── RemediationConfigError     it cannot be run like that; one line
"""

from __future__ import annotations


class RemediationError(Exception):
    """Any of them."""


class RemediationConfigError(RemediationError, ValueError):
    """It cannot be run like that; one line with what is allowed."""
