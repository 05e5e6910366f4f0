"""All routes of all families."""

from __future__ import annotations

from mews.emulator.dialects.redfish.resources import (
    accounts,
    blocks,
    certificates,
    chassis,
    endpoints,
    events,
    fabric,
    logs,
    managers,
    metrics,
    pcie,
    registries,
    root,
    sensors,
    sessions,
    systems,
    tasks,
    telemetry,
    update,
    zones,
)

ROUTES = (
    *root.ROUTES,
    *fabric.ROUTES,
    *zones.ROUTES,
    *endpoints.ROUTES,
    *systems.ROUTES,
    *chassis.ROUTES,
    *pcie.ROUTES,
    *blocks.ROUTES,
    *tasks.ROUTES,
    *events.ROUTES,
    *sessions.ROUTES,
    *accounts.ROUTES,
    *managers.ROUTES,
    *certificates.ROUTES,
    *logs.ROUTES,
    *update.ROUTES,
    *telemetry.ROUTES,
    *sensors.ROUTES,
    *metrics.ROUTES,
    *registries.ROUTES,
)
