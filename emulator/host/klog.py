"""The kernel log of a host, as far as NVIDIA's driver and PCI hot-plug write into it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

KEPT = 2000
"""Lines; a kernel's ring buffer is finite too."""

XIDS: Mapping[int, str] = {
    13: "Graphics Exception: ESR 0x404600=0x80000002",
    31: "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f2a_00000000",
    43: "Ch 00000008, GPU stopped processing",
    45: "Ch 00000008, Preemptive Channel Removal",
    48: "An uncorrectable double bit error (DBE) has been detected on GPU",
    63: "Row Remapper: New row marked for remapping, reset gpu to activate.",
    64: "Row Remapper: Error recording row remapping",
    68: "NVDEC0 Exception",
    74: "NVLink: fatal error detected on link 0",
    79: "GPU has fallen off the bus.",
    94: "Contained ECC error",
    95: "Uncontained ECC error",
    109: "Ch 00000008, errorString CTX SWITCH TIMEOUT",
    119: "Timeout waiting for RPC from GSP!",
}
"""XID -> text (NVIDIA's "Xid Errors", docs.nvidia.com/deploy/xid-errors)."""


def xid_text(xid: int) -> str:
    """Return the driver's words for an XID."""
    return XIDS.get(xid, "Unknown")


class KernelLog:
    """Lines, oldest first; ``total`` counts all that were ever written."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT)
        self.total = 0

    def write(self, t: float, text: str) -> None:
        """One line at emulated time ``t``."""
        self._lines.append(f"[{t:12.6f}] {text}")
        self.total += 1

    def xid(self, t: float, bdf: str, xid: int, instance: int = -1) -> None:
        """An XID, as the driver writes it; the address is without the function, but with a GPU instance's ID."""
        place = bdf.rpartition(".")[0] + (f" GPU-I:{instance:02d}" if instance >= 0 else "")
        self.write(t, f"NVRM: Xid (PCI:{place}): {xid}, pid='<unknown>', name=<unknown>, {xid_text(xid)}")

    def lines(self) -> tuple[str, ...]:
        """Return the lines of the kernel log that are kept."""
        return tuple(self._lines)

    def text(self) -> str:
        """Return the log as a file."""
        return "".join(f"{line}\n" for line in self._lines)
