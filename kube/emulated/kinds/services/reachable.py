"""What endpoints and slices of them share: addresses that may be reached."""

from __future__ import annotations

import ipaddress
import re

from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError

PROTOCOLS = ("SCTP", "TCP", "UDP")


def reachable(path: str, text: str, *, from_afar: bool = False) -> list[FieldError]:
    """Return an address at which an endpoint can be (ValidateEndpointIP); on loopback too, where pods are, unless it is
    one that others have to reach."""
    if not addresses.is_address(text):
        return [refusals.bad(path, text, "must be a valid IP address")]
    found = ipaddress.ip_address(re.sub(r"(?<![0-9a-fA-F:])0+(?=[0-9])", "", text) if ":" not in text else text)
    texts = []
    if found.is_unspecified:
        texts.append(f"may not be unspecified ({text})")
    if from_afar and found.is_loopback:
        texts.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local:
        texts.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if found in ipaddress.ip_network("224.0.0.0/24" if found.version == 4 else "ff02::/16"):
        texts.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return common.bads(path, text, texts)
