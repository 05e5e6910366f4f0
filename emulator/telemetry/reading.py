"""What a GPU shows at one moment: the values that every reader renders."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class GpuCounters:
    """Errors counted: since the driver was loaded (volatile) and over the board's life (aggregate); rows of memory that
    were put out of use for them; PCIe packets that were sent again. ``cleared_uncorrected``: uncorrectable errors that
    somebody cleared from the aggregate count; the rows that they cost stay out of use."""

    ecc_volatile_corrected: int = 0
    ecc_volatile_uncorrected: int = 0
    ecc_aggregate_corrected: int = 0
    ecc_aggregate_uncorrected: int = 0
    pcie_replays: int = 0
    cleared_uncorrected: int = 0

    @property
    def _uncorrected(self) -> int:
        """Over the board's life, cleared or not."""
        return self.ecc_aggregate_uncorrected + self.cleared_uncorrected

    @property
    def remapped_rows(self) -> int:
        """Rows that uncorrectable errors cost; a board has so many spare ones."""
        return min(self._uncorrected, SPARE_ROWS)

    @property
    def remap_pending(self) -> bool:
        """Whether a remapping waits for the driver to be loaded anew."""
        return self.ecc_volatile_uncorrected > 0

    @property
    def remap_failed(self) -> bool:
        """Whether there were more errors than spare rows."""
        return self._uncorrected > SPARE_ROWS


SPARE_ROWS = 512
NO_ERRORS = GpuCounters()
COUNTERS = tuple(field.name for field in fields(GpuCounters))


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """One process on the GPU, by the key of whoever reported it."""

    key: str
    utilization_percent: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class GpuReading:
    """All of one GPU at one moment. ``fan_percent`` and ``memory_temperature_c`` None: it has no such sensor."""

    uuid: str
    utilization_percent: int
    memory_utilization_percent: int
    memory_used_mib: int
    memory_total_mib: int
    memory_reserved_mib: int
    power_mw: int
    power_limit_mw: int
    energy_mj: int
    energy_kwh: float
    temperature_c: float
    memory_temperature_c: float | None
    fan_percent: int | None
    sm_clock_mhz: int
    memory_clock_mhz: int
    video_clock_mhz: int
    pstate: int
    throttle_reasons: int
    pcie_tx_kb_s: int
    pcie_rx_kb_s: int
    counters: GpuCounters
    processes: tuple[ProcessReading, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return them for JSON."""
        return asdict(self)
