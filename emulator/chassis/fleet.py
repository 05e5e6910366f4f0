"""All chassis of a hardware file together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.events import Listener, ignore
from mews.emulator.chassis.store import TableStore
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.telemetry.chassis import ChassisTelemetry
from mews.names import must_be

if TYPE_CHECKING:
    from mews.emulator.telemetry.store import TelemetryStore

ROW_KEYS = ("uuid", "port", "host", "kind", "model", "serial", "pool", "gpuid", "link", "pending")
"""What a row of the table has."""


class Fleet:
    """The boxes by chassis name, each with its own stream of chance."""

    def __init__(
        self,
        hardware: Hardware,
        context: EmulationContext,
        *,
        listener: Listener = ignore,
        stores: Mapping[str, TableStore] | None = None,
        telemetry_stores: Mapping[str, TelemetryStore] | None = None,
    ) -> None:
        self.hardware = hardware
        self._context = context
        self._listener = listener
        self._stores = dict(stores or {})
        self.telemetry = {
            spec.name: ChassisTelemetry(
                f"{context.seed}/telemetry/{spec.name}", (telemetry_stores or {}).get(spec.name)
            )
            for spec in hardware.chassis
        }
        self.boxes: dict[str, EmulatedChassis] = {}
        self.boxes |= {spec.name: self.build(spec.name) for spec in hardware.chassis}

    def build(self, name: str) -> EmulatedChassis:
        """Return a box of that name as it is after power-on: its table from the store, nothing running. It counts its
        events on from those of the one before: hosts take one with a number that was for one that comes late."""
        spec = next(spec for spec in self.hardware.chassis if spec.name == name)
        rng = self._context.rng(f"chassis/{name}")
        store, telemetry = self._stores.get(name), self.telemetry[name]
        before = self.boxes[name].events.emitted if name in self.boxes else 0
        return EmulatedChassis(
            spec, rng, listener=self._listener, store=store, telemetry=telemetry, events_emitted=before
        )

    def box(self, name: str) -> EmulatedChassis:
        """Return the chassis of that name.

        Raises ValueError naming those there are.
        """
        try:
            return self.boxes[name]
        except KeyError:
            raise ValueError(f"chassis {name!r}: {must_be(name, self.boxes)}") from None

    def table(self, now_s: float) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis -> device -> ``{uuid, port, host, kind, model, serial, pool, gpuid, link, pending}`` as it truly is.

        ``port`` and ``host`` are None while free; ``pending`` is ``attach``, ``detach`` or None.
        """
        return {name: self.rows(name, now_s) for name in self.boxes}

    def rows(self, name: str, now_s: float) -> dict[str, dict[str, Any]]:
        """Return the table of one chassis."""
        box = self.box(name)
        rows = box.rows(now_s)
        pending = box.operations.pending()
        return {
            row.device: {
                "uuid": box.table.spec(row.device).uuid,
                "port": row.port,
                "host": None if row.port is None else box.spec.ports.get(row.port),
                "kind": row.kind,
                "model": box.table.spec(row.device).model,
                "serial": box.table.spec(row.device).serial,
                "pool": box.spec.pool,
                "gpuid": box.spec.gpuid(row.device),
                "link": "up" if row.link else "down",
                "pending": pending[row.device].value if row.device in pending else None,
            }
            for row in rows
        }
