"""Discovery of Redfish services by SSDP (DSP0266, "Discovery"): a search of the local network is answered, for each
service whose ``NetworkProtocol`` has it enabled. Nothing is announced unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from mews.listening.datagrams import GroupListener

GROUP, PORT = "239.255.255.250", 1900
REDFISH = "urn:dmtf-org:service:redfish-rest:1"
MINOR = "22"
"""Of the Redfish specification that the service root names."""
MAX_AGE_S = 1800


class Discoverable(Struct):
    """One service: its UUID, where its root is, and whether it wants to be found."""

    uuid: str
    root: Callable[[], str]
    is_enabled: bool = True


class SsdpResponder:
    """Answers SSDP searches for these services.

    Raises OSError where the port cannot be had.
    """

    def __init__(self, services: Sequence[Discoverable]) -> None:
        self._services = tuple(services)
        self._listener = GroupListener(GROUP, PORT, self.answers)

    def start(self) -> None:
        """Answer from now on."""
        self._listener.start()

    def stop(self) -> None:
        """Answer no more."""
        self._listener.stop()

    def answers(self, asked: bytes) -> Iterator[bytes]:
        """Return the replies to a datagram: one for each service that is sought."""
        return answers(asked, self._services)


def answers(asked: bytes, services: Sequence[Discoverable]) -> Iterator[bytes]:
    """Yield what a datagram is answered with: nothing, unless it is a search for Redfish services or for everything."""
    first, *lines = asked.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if first.split() != ["M-SEARCH", "*", "HTTP/1.1"] or headers.get("man") != '"ssdp:discover"':
        return
    sought = headers.get("st", "")
    if sought not in ("ssdp:all", "upnp:rootdevice", REDFISH) and not sought.startswith(f"{REDFISH}:"):
        return
    target = f"{REDFISH}:{MINOR}"
    for service in services:
        if service.is_enabled:
            lines = [
                "HTTP/1.1 200 OK",
                f"CACHE-CONTROL: max-age={MAX_AGE_S}",
                "EXT:",
                f"ST: {target}",
                f"USN: uuid:{service.uuid}::{target}",
                f"AL: {service.root()}",
                "",
                "",
            ]
            yield "\r\n".join(lines).encode("ascii")
