"""Errors of the DRA manager.

::

    DraError                a claim that cannot be prepared or unprepared, in upstream's words
    └── DraCheckpointError  ``dra_manager_state`` cannot be read
"""

from __future__ import annotations


class DraError(Exception):
    """Tried again later."""


class DraCheckpointError(DraError):
    """Such a kubelet does not start."""
