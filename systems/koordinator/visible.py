"""``NVIDIA_VISIBLE_DEVICES`` and the GPUs of a node, both ways. Pure (contract koordinator.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from mews.systems.koordinator.names import VISIBLE

_NOTHING = ("", "void", "none")


class IndexedGpu(Struct, frozen=True):
    """A GPU as its node numbers it: ``index`` is NVML's, by which the container runtime reads numbers."""

    index: int
    minor: int
    uuid: str


def visible_text(given: Sequence[IndexedGpu], node: Sequence[IndexedGpu]) -> str:
    """Return the variable's text for these GPUs: minors, where all GPUs of the node have their index for it; else
    UUIDs."""
    if all(gpu.index == gpu.minor for gpu in node):
        return ",".join(str(gpu.minor) for gpu in given)
    return ",".join(gpu.uuid for gpu in given)


def visible_ids(env: Mapping[str, str], node: Sequence[IndexedGpu]) -> tuple[str, ...]:
    """Return the UUIDs that an environment names: by index, UUID or ``all``; () for ``none``, ``void`` and no variable.
    A UUID that the node does not have is kept: it may come back. An index that it does not have is nothing."""
    text = env.get(VISIBLE, "").strip()
    if text in _NOTHING:
        return ()
    if text == "all":
        return tuple(gpu.uuid for gpu in node)
    found: dict[str, None] = {}
    for word in (each.strip() for each in text.split(",")):
        if word.isdecimal():
            found |= {gpu.uuid: None for gpu in node if gpu.index == int(word)}
        elif word:
            known = [gpu.uuid for gpu in node if gpu.uuid.lower() == word.lower()]
            found |= dict.fromkeys(known or ([word] if word.startswith("GPU-") else []))
    return tuple(found)
