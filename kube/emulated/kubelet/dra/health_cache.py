"""What a kubelet knows of the health of devices, and the file in which that survives it (``dra_health_state``).

Source: pkg/kubelet/cm/dra/healthinfo.go of Kubernetes 1.37.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.api.objects import micro_timestamp, seconds
from mews.kube.clock import Pace
from mews.kube.dra.port import UNKNOWN, DeviceHealth
from mews.kube.emulated.kubelet.dra.errors import DraCheckpointError
from mews.kube.emulated.kubelet.dra.state_store import DraStateStore

DEFAULT_TIMEOUT_S = 30.0
MOST_DEVICES = 16384
"""Of one driver; a report's devices beyond that are passed over."""
MOST_MESSAGE_BYTES = 1024
_NANOSECONDS = 10**9


class _Report(Struct, frozen=True):
    health: DeviceHealth
    at_s: float
    """Loop seconds."""


class HealthCache:
    """The last report of each device, by driver. A report is believed for as long as it says itself."""

    def __init__(self, now: Callable[[], float], pace: Pace, store: DraStateStore, log: logging.Logger) -> None:
        self._now = now
        self._pace = pace
        self._store = store
        self._log = log
        self._reports: dict[str, dict[tuple[str, str], _Report]] = {}
        try:
            self._reports = dict(_read(store.load()))
        except (DraCheckpointError, LookupError, TypeError, ValueError, AttributeError) as error:
            log.info("health of devices not loaded, none is known: %s", error)

    def of(self, driver: str, pool: str, device: str) -> DeviceHealth:
        """Return a device's health now; unknown where its report is too old or there is none."""
        report = self._reports.get(driver, {}).get((pool, device))
        if report is None or self._is_old(report):
            return DeviceHealth(pool, device)
        return report.health

    def update(self, driver: str, devices: Sequence[DeviceHealth]) -> list[DeviceHealth]:
        """Take in a report of all devices; those whose health is another now. What it leaves out is forgotten once its
        last report is too old."""
        now_s, known = self._now(), self._reports.setdefault(driver, {})
        changed: list[DeviceHealth] = []
        ignored = 0
        for each in devices:
            health, key = replace(each, message=_shortened(each.message)), (each.pool, each.device)
            before = known.get(key)
            if before is None and len(known) >= MOST_DEVICES:
                ignored += 1
                continue
            if before is None or before.health != health:
                changed.append(health)
            known[key] = _Report(health, now_s)
        if ignored:
            self._log.info("health of %s: %d devices beyond %d ignored", driver, ignored, MOST_DEVICES)
        old = [key for key, report in known.items() if self._is_old(report)]
        for key in old:
            health = known.pop(key).health
            if health.health != UNKNOWN:
                changed.append(replace(health, health=UNKNOWN, message=""))
        if changed or old:
            self._save()
        return changed

    def clear(self, driver: str) -> None:
        """Nobody reports for that driver any more."""
        self._reports.pop(driver, None)
        self._save()

    def _is_old(self, report: _Report) -> bool:
        timeout_s = report.health.timeout_s or DEFAULT_TIMEOUT_S
        return self._now() - report.at_s > self._pace.loop_s(timeout_s)

    def _save(self) -> None:
        try:
            self._store.save(json.dumps(_written(self._reports), separators=(",", ":"), ensure_ascii=False))
        except OSError as error:
            self._log.info("health of devices not saved: %s", error)


def _shortened(message: str) -> str:
    """Return at most 1024 bytes (truncateHealthMessage of pkg/kubelet/cm/dra/manager.go)."""
    data = message.encode()
    if len(data) <= MOST_MESSAGE_BYTES:
        return message
    return data[: MOST_MESSAGE_BYTES - 3].decode(errors="ignore") + "..."


def _written(reports: Mapping[str, Mapping[tuple[str, str], _Report]]) -> dict[str, Any]:
    return {
        driver: {"Devices": {"/".join(key): _entry(report) for key, report in devices.items()}}
        for driver, devices in reports.items()
    }


def _entry(report: _Report) -> dict[str, Any]:
    health = report.health
    return {
        "PoolName": health.pool,
        "DeviceName": health.device,
        "Health": health.health,
        "LastUpdated": micro_timestamp(report.at_s),
        "HealthCheckTimeout": int((health.timeout_s or DEFAULT_TIMEOUT_S) * _NANOSECONDS),
        "Message": health.message,
    }


def _read(text: str) -> Iterator[tuple[str, dict[tuple[str, str], _Report]]]:
    for driver, state in (json.loads(text) if text else {}).items():
        devices = {}
        for entry in (state["Devices"] or {}).values():
            timeout_s = entry["HealthCheckTimeout"] / _NANOSECONDS
            key = (str(entry["PoolName"]), str(entry["DeviceName"]))
            health = DeviceHealth(*key, str(entry["Health"]), str(entry["Message"]), timeout_s)
            devices[key] = _Report(health, seconds(entry["LastUpdated"]))
        yield driver, devices
