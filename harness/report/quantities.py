"""Times and sizes in the reader's units, as the pages' scripts write them."""

from __future__ import annotations


def span_text(seconds: float) -> str:
    """``850 µs``, ``12 ms``, ``1.25 s``, ``2 min 05 s``."""
    if seconds < 0.0009995:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def size_text(count: int) -> str:
    """Return bytes as ``243 B``, ``1.2 KiB``, ``3.4 MiB``."""
    for power, unit in ((2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count} B"
