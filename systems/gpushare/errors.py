"""Errors of GPU Share.

::

    GpuShareError
    └── GpuShareConfigError     it cannot be run like that; one line
"""

from __future__ import annotations


class GpuShareError(Exception):
    """Any of them."""


class GpuShareConfigError(GpuShareError, ValueError):
    """It cannot be run like that; one line with what is allowed."""
