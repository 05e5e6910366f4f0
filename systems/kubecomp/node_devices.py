"""One node's share of the pool: what is on its ports, withdrawn, announced. Decides, waits for nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from mews.kube.deviceplugin.port import HEALTHY, UNHEALTHY, PluginDevice
from mews.systems.kubecomp import policy
from mews.systems.kubecomp.holders import GpuHolders
from mews.systems.kubecomp.policy import Claim, Consent
from mews.systems.kubecomp.records import RemovedDevice, WithdrawRequest


class LocalDevice(Struct, frozen=True):
    """A device on one of this node's ports."""

    gpuid: str
    uuid: str
    chassis: str
    device: str


class NodeDevices:
    """The book of one node. Its writer is that node's DevMgr; ``round`` numbers the readings of the chassis.
    ``announces``: False where another component hands the devices out."""

    def __init__(self, *, announces: bool = True) -> None:
        self._announces = announces
        self.holders = GpuHolders()
        self.round = 0
        self.out: dict[str, RemovedDevice] = {}
        """What the host is giving up, or has given up: not to be announced, whatever its files show."""
        self._here: dict[str, LocalDevice] = {}
        self._known: dict[str, LocalDevice] = {}
        self._withdrawn: dict[str, str] = {}
        self._withheld: frozenset[str] = frozenset()
        self._divided: frozenset[str] = frozenset()
        self._returning: dict[str, int] = {}
        self._refused: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._consents: dict[str, Consent] = {}
        self._changes = 0
        """Counts what may change what is announced, but for ``out``."""
        self._seen: tuple[Sequence[LocalDevice], GpuHolders] | None = None
        self._shown: tuple[list[tuple[str, bool]], tuple[PluginDevice, ...]] = ([], ())
        self._shown_of: tuple[int, tuple[str, ...]] | None = None
        self._healthy: tuple[tuple[PluginDevice, ...], tuple[str, ...]] = ((), ())

    # Readings

    def seen(self, devices: Sequence[LocalDevice], *, round_begun: int) -> None:
        """Take over what a reading shows on this node's ports. ``round_begun`` is ``round`` as the reading began.

        A device asked back is announced again only by a reading that began after that.
        """
        before = self._seen
        if before is not None and before[0] is devices and before[1] is self.holders and not self._returning:
            return  # The very reading, held by the very pods, that made it what it is.
        self._seen = devices, self.holders
        self._changes += 1
        self._here = {device.gpuid: device for device in devices}
        for gpuid in [gpuid for gpuid, since in self._returning.items() if round_begun > since]:
            del self._returning[gpuid]
        for gpuid, device in self._here.items():
            if not (known := self._known.get(gpuid)) or known.uuid == device.uuid or not self.holders.uses(gpuid):
                self._known[gpuid] = device
        for gpuid in [g for g in self._known if g not in self._here and not self._in_use(g)]:
            del self._known[gpuid]

    def _in_use(self, gpuid: str) -> bool:
        return gpuid in self.holders.held or gpuid in self.holders.grants

    # Announcing

    def announced(self) -> tuple[PluginDevice, ...]:
        """Return the list for the kubelet, in order of GPUID; the same tuple as long as nothing of it changes. A device
        in use stays in it, Unhealthy when it is not here."""
        if not self._announces:
            return ()
        of = self._changes, tuple(self.out)
        if of == self._shown_of:
            return self._shown[1]
        self._shown_of = of
        shown = [
            (gpuid, self._is_healthy(gpuid))
            for gpuid in sorted(self._known)
            if gpuid not in self._withdrawn and gpuid not in self._returning and gpuid not in self.out
        ]
        if shown != self._shown[0]:
            devices = (PluginDevice(gpuid, HEALTHY if healthy else UNHEALTHY) for gpuid, healthy in shown)
            self._shown = shown, tuple(devices)
        return self._shown[1]

    def _is_healthy(self, gpuid: str) -> bool:
        here = self._here.get(gpuid)
        return (
            here is not None
            and bool(here.uuid)
            and here.uuid == self._known[gpuid].uuid
            and here.uuid not in self._withheld
            and here.uuid not in self._divided
        )

    @property
    def withheld(self) -> frozenset[str]:
        """The UUIDs of the devices that are broken."""
        return self._withheld

    def withhold(self, uuids: frozenset[str]) -> bool:
        """These devices are broken, and no others: whether that is news."""
        if uuids == self._withheld:
            return False
        self._withheld = uuids
        self._changes += 1
        return True

    def divide(self, uuids: frozenset[str]) -> None:
        """These devices are in MIG mode, and no others."""
        self._changes += uuids != self._divided
        self._divided = uuids

    def divided(self) -> tuple[str, ...]:
        """Return the GPUIDs announced as unhealthy because they are in MIG mode, and for no other reason."""
        shown = (device.id for device in self.announced()) if self._divided else ()
        here = (self._here[gpuid] for gpuid in shown if gpuid in self._here)
        return tuple(each.gpuid for each in here if each.uuid in self._divided and each.uuid not in self._withheld)

    def healthy(self) -> tuple[str, ...]:
        """Return the GPUIDs announced as healthy."""
        devices = self.announced()
        if devices is not self._healthy[0]:
            self._healthy = devices, tuple(device.id for device in devices if device.health == HEALTHY)
        return self._healthy[1]

    def why_not(self, gpuid: str) -> str | None:
        """Return why a container must not get this device now, None when it may."""
        if gpuid in self._withdrawn or gpuid in self._returning or gpuid in self.out:
            return "is withdrawn"
        if gpuid not in self._known:
            return "is unknown"
        return None if self._is_healthy(gpuid) else "is unhealthy"

    def uuid(self, gpuid: str) -> str:
        """Return the UUID of a device; "" for one that is not known."""
        known = self._known.get(gpuid)
        return known.uuid if known else ""

    # Withdrawing

    def asked(self, requests: Mapping[str, WithdrawRequest], *, now_s: float, claims: Sequence[Claim] | None) -> None:
        """Take over the requests for withdrawal. A device in use is never withdrawn; nor is one that the node's pods
        (``claims``, None: nobody could say) will need. Refusals name their request; lapsed requests are as none."""
        if not (requests or self._withdrawn or self._refused):
            return
        self._changes += 1
        active = {gpuid: entry.request for gpuid, entry in requests.items() if now_s < entry.until_s}
        for gpuid in [gpuid for gpuid in self._withdrawn if gpuid not in active]:
            del self._withdrawn[gpuid]
            self._consents.pop(gpuid, None)
            self._returning[gpuid] = self.round
        self._refused = {gpuid: request for gpuid, request in self._refused.items() if active.get(gpuid) == request}
        self._reasons = {gpuid: reason for gpuid, reason in self._reasons.items() if gpuid in self._refused}
        for gpuid, request in active.items():
            if gpuid in self._withdrawn:
                self._withdrawn[gpuid] = request
            elif gpuid not in self._refused and claims is not None and self.holders.known:
                self._answer(gpuid, request, claims)

    def _answer(self, gpuid: str, request: str, claims: Sequence[Claim]) -> None:
        healthy = self.healthy()
        free = gpuid not in healthy or policy.spare_after(healthy, self._taken(), claims, 1) >= 0
        if self.holders.uses(gpuid) or not free:
            self._refused[gpuid] = request
            return
        self._withdrawn[gpuid] = request
        self._returning.pop(gpuid, None)
        self._changes += 1

    def refuse(self, gpuid: str, reason: str) -> None:
        """The host does not give up a withdrawn device: its request is refused, for that reason."""
        request = self._withdrawn.pop(gpuid, None)
        if request is None:
            return  # It was asked back meanwhile.
        self._changes += 1
        self._consents.pop(gpuid, None)
        self._returning[gpuid] = self.round
        self._refused[gpuid], self._reasons[gpuid] = request, reason

    def given_back(self, gpuid: str) -> None:
        """The host has it again as it was: it is announced by a reading that begins after this."""
        if self.out.pop(gpuid, None) is not None:
            self._returning[gpuid] = self.round
            self._changes += 1

    def _taken(self) -> dict[str, str]:
        return {**dict.fromkeys(self.holders.grants, ""), **self.holders.held}

    def unanswered(self, requests: Mapping[str, WithdrawRequest], now_s: float) -> bool:
        """Return whether a request stands that is neither withdrawn nor refused."""
        return any(
            now_s < entry.until_s and gpuid not in self._withdrawn and self._refused.get(gpuid) != entry.request
            for gpuid, entry in requests.items()
        )

    @property
    def is_withdrawing(self) -> bool:
        """Whether a withdrawn device has no consent yet."""
        return any(gpuid not in self._consents for gpuid in self._withdrawn)

    def is_withdrawn(self, gpuid: str) -> bool:
        """Return whether that device is withdrawn."""
        return gpuid in self._withdrawn

    @property
    def withdrawn(self) -> Mapping[str, str]:
        """GPUID -> the request for which it is withdrawn."""
        return self._withdrawn

    @property
    def has_withdrawn(self) -> bool:
        """Whether any device is withdrawn."""
        return bool(self._withdrawn)

    def unused(self, allocatable: Collection[str]) -> dict[str, str]:
        """Return what is withdrawn, not allocatable in the kubelet and held by no pod: GPUID -> request."""
        return {g: r for g, r in self._withdrawn.items() if g not in allocatable and not self.holders.uses(g)}

    def consent(
        self, allocatable: Collection[str], *, now_s: float, renew_s: float, off: Collection[str] | None = None
    ) -> bool:
        """Consent to what is withdrawn, not allocatable in the kubelet, held by nobody and ``off`` its host (None: no
        host is asked); whether that changed.

        Consent that still holds is given anew once it is ``renew_s`` old; consent that does not is taken back.
        """
        unused = self.unused(allocatable).keys()
        free = unused if off is None else unused & set(off)
        before = dict(self._consents)
        for gpuid, request in self._withdrawn.items():
            given = self._consents.get(gpuid)
            if gpuid not in free:
                self._consents.pop(gpuid, None)
            elif given is None or given.request != request or now_s - given.time_s >= renew_s:
                self._consents[gpuid] = Consent(request, now_s)
        return before != self._consents

    @property
    def consents(self) -> Mapping[str, Consent]:
        """GPUID -> consent."""
        return self._consents

    @property
    def refused(self) -> Mapping[str, str]:
        """GPUID -> the request that was refused."""
        return self._refused

    @property
    def reasons(self) -> Mapping[str, str]:
        """GPUID -> why the host did not give it up, of those that are refused for that."""
        return self._reasons
