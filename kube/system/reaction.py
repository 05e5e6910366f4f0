"""How soon a system follows the hardware under it: what its own configuration lets it take, no more."""

from __future__ import annotations

from msgspec import Struct


class HardwareTimes(Struct, frozen=True):
    """The longest that undisturbed hardware takes, in seconds of the API's time: an operation of a chassis, and a
    device's way up (``arrive_s``) or out (``leave_s``) through the layers of its host.

    ``unnoticed_s``: how long a port takes to train on a host that finds a device by a rescan only, from then on; None
    where all hosts notice by themselves. ``devices``: the most that one host may have. ``release_s``: how long whoever
    hands out parts of devices may take to let go of one that is wanted whole.
    """

    read_s: float = 0.0
    attach_s: float = 0.0
    detach_s: float = 0.0
    arrive_s: float = 0.0
    leave_s: float = 0.0
    unnoticed_s: float | None = None
    devices: int = 1
    release_s: float = 0.0


class Reaction(Struct, frozen=True):
    """The longest that a configured system takes while nothing disturbs its hardware or itself, in seconds.

    ``notice_s``: from a change of a chassis' table, or of what a host sees, until the nodes' kubelets are offered what
    is there. ``repair_s``: for how long a device in the middle of a move may be on no port with no operation pending.
    """

    notice_s: float
    repair_s: float
