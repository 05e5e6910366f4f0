"""Errors of the allocator.

::

    AllocationError          a claim, class or pool with which no attempt can go on, in upstream's words
    ├── SelectorError        an expression that cannot be evaluated, without the class or claim it belongs to
    ├── NodeAllocationError  nothing is found on this node; others may do
    └── SearchTimeoutError   the search on this node takes too long
"""

from __future__ import annotations


class AllocationError(Exception):
    """Ends the whole attempt, on whichever node it occurs."""


class SelectorError(AllocationError):
    """What went wrong in an expression over a device."""


class NodeAllocationError(AllocationError):
    """Refuses one node (upstream ErrFailedAllocationOnNode)."""


class SearchTimeoutError(AllocationError):
    """The search took the steps that it may take; raised as ``timed out trying to allocate devices``."""
