"""The twelve faults of the published implementation (contract kubecomp.md section 3), the switches of ``mode: public``.

What each does is a pure function in ``published``; what it looks like from outside is shown by a test of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum


class KubeCompFault(StrEnum):
    """In the order of the contract."""

    BLOCKING_PERMIT = "blocking-permit"
    """1. Permit holds up the whole cycle. It looks at the node once a second and sees devices come, but not what a job
    that ends meanwhile frees: what pods request is the snapshot with which the cycle began."""
    SHORT_PERMIT = "short-permit"
    """2. Permit gives up after 10 + 30n seconds, or 15 + 5n as in the published head, which 44 of 51 measured
    reconfigurations exceed (``KubeCompConfig.permit_bound``)."""
    STALE_DEMAND = "stale-demand"
    """3. Annotations are never cleared, and every event, repeated or replayed, moves what they say once more."""
    NO_JOURNAL = "no-journal"
    """4. Nothing is written down: a crash between detach and attach leaves the device on no port."""
    ADVERTISED_IS_ALL = "advertised-is-all"
    """5. A connection that drops and a partial list are believed, and the scheduler counts a pool by what its nodes
    advertise at the moment: what is in flight is gone."""
    REPLY_BELIEVED = "reply-believed"
    """6. An operation is taken to have happened once it was answered; nothing is read back."""
    NO_RETRY = "no-retry"
    """7. An attach that failed after a good detach is not tried again, nor taken back."""
    EXEC_HOLDERS = "exec-holders"
    """8. A pod's devices are read from its environment by exec, once: an error is kept as "holds none"."""
    PENDING_SPIN = "pending-spin"
    """9. Availability is asked for again and again while a bound pod is Pending; nothing else is served."""
    UNKNOWN_ID = "unknown-id"
    """10. Allocate hands out an ID that it does not know, with an empty UUID."""
    FIRST_CONTAINER = "first-container"
    """11. Of a pod's containers the first alone is read."""
    UNASKED_MOVE = "unasked-move"
    """12. A device is detached without asking its node, whoever uses it by then."""


MODES = ("corrected", "public")
"""What ``KubeCompConfig.mode`` may be."""

ALL_FAULTS = tuple(fault.value for fault in KubeCompFault)


def chosen_faults(given: Mapping[str, bool] | Iterable[str] | None) -> tuple[str, ...]:
    """Return the faults of ``mode: public``: all of them, all but those a mapping switches off, or those a list names.

    Raises ValueError, one line.
    """
    if given is None:
        return ALL_FAULTS
    names = list(given)
    for name in names:
        if name not in ALL_FAULTS:
            raise ValueError(f"faults: {name!r}: must be one of {', '.join(ALL_FAULTS)}")
        if names.count(name) > 1:
            raise ValueError(f"faults: {name!r}: must be named once")
    if isinstance(given, Mapping):
        found = tuple(name for name in ALL_FAULTS if given.get(name, True))
    else:
        found = tuple(name for name in ALL_FAULTS if name in names)
    if not found:
        raise ValueError("faults: the list is empty: write mode: corrected")
    return found


def check_mode(mode: str, faults: tuple[str, ...], removal: str, *, permit: str | None = None) -> None:
    """Raise ValueError, one line, for what makes no sense together. ``permit``: the bound of Permit, where one was
    named."""
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r}: must be one of {', '.join(MODES)}")
    if mode == "corrected" and faults:
        raise ValueError(f"faults: {', '.join(faults)}: mode: corrected has none; write mode: public")
    if mode == "public" and not faults:
        raise ValueError("faults: the list is empty: write mode: corrected")
    if permit is not None and KubeCompFault.SHORT_PERMIT not in faults:
        raise ValueError(f"permit: {permit!r}: requires mode: public with the fault {KubeCompFault.SHORT_PERMIT}")
    if mode == "public" and removal != "surprise":
        raise ValueError(f"removal: {removal!r}: mode: public does not notify hosts: must be surprise, or left out")
