"""Datagrams of a pod that name their receiver (sendto(2))."""

from __future__ import annotations

import socket
import struct

from mews.kube.emulated.kubelet.podnet.addresses import PodAddress, mapped
from mews.kube.emulated.kubelet.podnet.calls import SocketCall

_PACKET_INFO = 8
"""IP_PKTINFO: who is named as the sender of one datagram."""


def send(own: socket.socket, call: SocketCall, place: tuple[str, int], *, source: PodAddress) -> int:
    """Send what the call is to send to that place; a socket with an address keeps it.

    Raises OSError.
    """
    data = call.content()
    is_local = place[0].startswith("127.")
    sender = source.local if place[0] == source.local else source.ip
    if own.family == socket.AF_INET6:
        packed = socket.inet_pton(socket.AF_INET6, mapped(sender)) + struct.pack("=I", 0)
        named = (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, packed)
        place = mapped(place[0]), place[1]
    else:
        packed = struct.pack("=i4s4s", 0, socket.inet_aton(sender), bytes(4))
        named = (socket.IPPROTO_IP, _PACKET_INFO, packed)
    return own.sendmsg([data], [named] if is_local else [], call.flags | socket.MSG_DONTWAIT, place)
