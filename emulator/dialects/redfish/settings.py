"""How a Redfish service is set up."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from mews.emulator.hardware.inventory import HostSpec
from mews.emulator.ssdp import Discoverable

ADMIN = "admin"
"""Name of the first account."""

EPOCH_S = 1_767_225_600.0
"""2026-01-01 00:00 UTC: when emulated time starts where nothing else is said."""


class RedfishSettings(Struct, frozen=True):
    """``password`` is the first account's, ``secret`` makes session tokens: 32 hexadecimal digits.

    ``zone_patch`` is the path in the body of H3's vendor PATCH of a zone to the list that replaces its endpoints, and
    ``zone_patch_key`` what names an endpoint there; both are assumed (chassis.md 4), as no body is public.
    ``certificate`` is the server's, in PEM, where TLS is spoken; ``install`` puts another (PEM, with its key) in its
    place and gives it back without the key, or raises ValueError. ``port`` says where the server listens, and
    ``address`` at which IP address ("": none that could be named). ``hosts`` are the servers that may be cabled, by
    name.
    ``discovery`` is what can be found of the service by SSDP, None where nobody answers for it.
    ``wall_s`` gives the Unix time that tokens live by, where that is not ``epoch_s`` and emulated time; ``tenant``:
    whose a fabric manager's machines are, "" for the usual one.
    ``plain_logins``: sessions are opened and used over plain HTTP, too; Basic authentication never is (DSP0266).
    """

    password: str
    secret: Callable[[], str]
    epoch_s: float = EPOCH_S
    zone_patch: tuple[str, ...] = ("Links", "Endpoints")
    zone_patch_key: str = "@odata.id"
    retry_after_s: int = 1
    session_timeout_s: int = 1800
    lockout_after: int = 5
    lockout_s: int = 30
    reboot_s: float = 20.0
    flap_s: float = 2.0
    host_off_s: float = 5.0
    page: int = 100
    certificate: str | None = None
    install: Callable[[str], str] | None = None
    port: Callable[[], int] | None = None
    address: str = ""
    hosts: Mapping[str, HostSpec] = field(default_factory=dict)
    plain_logins: bool = False
    wall_s: Callable[[], float] | None = None
    tenant: str = ""
    discovery: Discoverable | None = None


def without_a_wire(name: str, password: str | None = None) -> RedfishSettings:
    """Return it for use in process, where nobody can listen: tokens (and a password, if none is given) follow from the
    name."""
    rng = random.Random(f"redfish/{name}")

    def secret() -> str:
        return f"{rng.getrandbits(128):032x}"

    return RedfishSettings(secret() if password is None else password, secret)
