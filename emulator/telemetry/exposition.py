"""Boards as metrics for Prometheus, under the names of NVIDIA's dcgm-exporter. Text only; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from mews.emulator.telemetry.reading import GpuReading

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ExposedGpu(Struct, frozen=True):
    """One board with its labels."""

    labels: Mapping[str, str]
    reading: GpuReading


class ExposedMetric(Struct, frozen=True):
    """One metric; ``value`` None: this board has no such sensor."""

    name: str
    type: str
    help: str
    value: Callable[[GpuReading], float | None]


METRICS = (
    ExposedMetric("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", lambda r: r.sm_clock_mhz),
    ExposedMetric("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", lambda r: r.memory_clock_mhz),
    ExposedMetric("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", lambda r: round(r.temperature_c)),
    ExposedMetric("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (in C).", lambda r: _memory_c(r)),
    ExposedMetric("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", lambda r: r.power_mw / 1000),
    ExposedMetric(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Total energy consumption since boot (in mJ).",
        lambda r: r.energy_mj,
    ),
    ExposedMetric(
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries.", lambda r: r.counters.pcie_replays
    ),
    ExposedMetric("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", lambda r: r.utilization_percent),
    ExposedMetric(
        "DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %).", lambda r: r.memory_utilization_percent
    ),
    ExposedMetric("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", lambda r: r.memory_used_mib),
    ExposedMetric(
        "DCGM_FI_DEV_FB_FREE",
        "gauge",
        "Framebuffer memory free (in MiB).",
        lambda r: r.memory_total_mib - r.memory_reserved_mib - r.memory_used_mib,
    ),
    ExposedMetric(
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "counter",
        "Total number of single-bit volatile ECC errors.",
        lambda r: r.counters.ecc_volatile_corrected,
    ),
    ExposedMetric(
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "counter",
        "Total number of double-bit volatile ECC errors.",
        lambda r: r.counters.ecc_volatile_uncorrected,
    ),
    ExposedMetric(
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
        "counter",
        "Total number of single-bit persistent ECC errors.",
        lambda r: r.counters.ecc_aggregate_corrected,
    ),
    ExposedMetric(
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
        "counter",
        "Total number of double-bit persistent ECC errors.",
        lambda r: r.counters.ecc_aggregate_uncorrected,
    ),
    ExposedMetric(
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for uncorrectable errors.",
        lambda r: r.counters.remapped_rows,
    ),
    ExposedMetric(
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "gauge",
        "Whether remapping of rows has failed.",
        lambda r: r.counters.remap_failed,
    ),
    ExposedMetric(
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", "Current clock event reasons.", lambda r: r.throttle_reasons
    ),
)


def _memory_c(reading: GpuReading) -> float | None:
    return None if reading.memory_temperature_c is None else round(reading.memory_temperature_c)


def exposition(gpus: Iterable[ExposedGpu]) -> str:
    """Return the text that Prometheus scrapes."""
    shown = list(gpus)
    lines: list[str] = []
    for metric in METRICS:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.type}"]
        for gpu in shown:
            value = metric.value(gpu.reading)
            if value is not None:
                lines.append(f"{metric.name}{{{_labels(gpu.labels)}}} {float(value):.15g}")
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
