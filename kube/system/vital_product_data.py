"""Vital product data of a PCI function, as sysfs shows it in ``vpd`` (PCI 3.0 appendix I). Pure."""

from __future__ import annotations

READ_ONLY = 0x90
"""The tag of the part with the vendor's fields."""


def vendor_field(vpd: bytes, key: bytes = b"V0") -> str:
    """Return a field of the read-only part; "" where there is none."""
    at = 0
    while at + 3 <= len(vpd) and vpd[at] & 0x80:
        tag, length = vpd[at], int.from_bytes(vpd[at + 1 : at + 3], "little")
        fields = vpd[at + 3 : at + 3 + length]
        at += 3 + length
        if tag != READ_ONLY:
            continue
        while len(fields) >= 3:
            name, size = fields[:2], fields[2]
            if name == key:
                return fields[3 : 3 + size].decode("utf-8", "replace")
            fields = fields[3 + size :]
    return ""
