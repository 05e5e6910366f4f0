"""Where the nodes of the embedded cluster are, as kind numbers its own."""

from __future__ import annotations


def node_address(number: int) -> str:
    """Return the address of a node, the first being 0."""
    high, low = divmod(number + 2, 256)
    return f"172.18.{high}.{low}"
