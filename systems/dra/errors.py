"""Errors of the driver.

::

    DraConfigError     it cannot be run like that; one line
"""

from __future__ import annotations


class DraConfigError(ValueError):
    """It cannot be run like that; one line with what is allowed."""
