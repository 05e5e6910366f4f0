"""Errors of the pool driver.

::

    PoolDraError     it cannot run like that; one line
"""

from __future__ import annotations


class PoolDraError(ValueError):
    """It cannot run like that; one line with what is allowed."""
