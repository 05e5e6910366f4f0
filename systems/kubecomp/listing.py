"""What to believe of a chassis' listings: they may be partial or missing (contract chassis.md sections 2 and 6)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from mews.kube.chassis.port import DeviceRecord, Listing


class KnownChassis(Struct, frozen=True):
    """One chassis as far as it is known: device ID -> its last record.

    ``missing`` are the known devices that the last reading lacked, ``repeats`` how many readings in a row lacked
    exactly those, ``seen`` whether any reading came at all.
    """

    devices: Mapping[str, DeviceRecord] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    repeats: int = 0
    seen: bool = False

    @property
    def is_full(self) -> bool:
        """Whether the last reading showed everything that is known."""
        return self.seen and not self.missing


def judge(belief: KnownChassis, listing: Listing, *, kind: str, vanish_reads: int) -> KnownChassis:
    """Return the belief after one more reading; only devices of ``kind`` count.

    What a listing shows is believed; what it lacks is not, until ``vanish_reads`` readings in a row lack the very
    same devices. An empty listing never empties the belief.
    """
    shown = {record.device: record for record in listing.devices if record.kind == kind}
    missing = frozenset(belief.devices.keys() - shown.keys())
    if not missing:
        return KnownChassis(shown, seen=True)
    repeats = belief.repeats + 1 if missing == belief.missing else 1
    if shown and repeats >= vanish_reads:
        return KnownChassis(shown, seen=True)
    return KnownChassis({**belief.devices, **shown}, missing, repeats, seen=True)
