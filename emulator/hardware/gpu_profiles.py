"""What a GPU model is: constants that NVML and nvidia-smi tell of it, as data in ``gpus/``.

Sources: PCI ids and board names from the public PCI ID database (``pci.ids``, vendor 10de); memory, cores, compute
capability, bus width and power limits from NVIDIA's data sheets and the CUDA programming guide's table of compute
capabilities; clocks, BAR1 sizes, temperature thresholds, VBIOS and part-number forms as public ``nvidia-smi -q``
outputs of such boards show them. Where boards of one model differ, one of them is taken. Files say what is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from msgspec import convert
from msgspec.structs import fields

from mews.emulator.hardware.gpu_profile import MIB, GpuProfile
from mews.emulator.hardware.model_files import ModelFiles

__all__ = ["ALIASES", "DEFAULT_MODEL", "MIB", "PROFILES", "GpuProfile", "gpu_models", "is_known", "profile_of"]

_FOLDER = Path(__file__).parent / "gpus"
_FIELDS = frozenset(field.name for field in fields(GpuProfile))


def gpu_models(folder: Path) -> ModelFiles[GpuProfile]:
    """Return the models of a folder."""
    return ModelFiles(folder, _FIELDS, lambda _, values: convert(values, GpuProfile))


PROFILES: Mapping[str, GpuProfile] = gpu_models(_FOLDER)

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "RTX3090": "RTX 3090",
        "RTX-3090": "RTX 3090",
        "3090": "RTX 3090",
        "RTX 6000": "RTX 6000 ADA",
        "RTX6000": "RTX 6000 ADA",
        "RTX 6000 ADA GENERATION": "RTX 6000 ADA",
        "A100-SXM4": "A100-SXM4-80GB",
        "H100-SXM5": "H100-SXM",
        "H100 SXM": "H100-SXM",
        "H100 SXM5": "H100-SXM",
        "H100 80GB HBM3": "H100-SXM",
        "B300 SXM6 AC": "B300",
        "RTX PRO 6000 BLACKWELL": "RTX PRO 6000",
        "RTX PRO 6000 BLACKWELL SERVER EDITION": "RTX PRO 6000",
        "RTX PRO 5000 BLACKWELL": "RTX PRO 5000",
        "RTX PRO 4500 BLACKWELL": "RTX PRO 4500",
    }
)

MAKERS = ("NVIDIA", "TESLA", "GEFORCE")
"""Words that may stand before a model, in this order."""

DEFAULT_MODEL = "V100"


def profile_of(model: str) -> GpuProfile:
    """Return the profile of a model as inventories name it (``V100``, ``RTX 3090``, ``rtx3090``, ``NVIDIA A100``).

    Raises KeyError with the models there are.
    """
    if is_known(model):
        return PROFILES[_key(model)]
    raise KeyError(f"GPU model {model!r}: none of {', '.join(PROFILES)}")


def is_known(model: str) -> bool:
    """Return whether there is such a model."""
    return _key(model) in PROFILES


@lru_cache(maxsize=256)
def _key(model: str) -> str:
    wanted = model.strip().upper()
    for maker in MAKERS:
        wanted = wanted.removeprefix(f"{maker} ")
    return ALIASES.get(wanted, wanted)
