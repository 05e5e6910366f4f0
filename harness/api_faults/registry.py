"""All faults between a component and the API by kind; one is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mews.emulator.chassis.faults.bench import ChassisFault
from mews.emulator.chassis.faults.spec import FILTERS, FaultTrigger, fault_registry, parse_fault

OURS: Mapping[str, str] = {
    "lagging-watch": "mews.harness.api_faults.reads:LaggingWatch",
    "unordered-watches": "mews.harness.api_faults.reads:UnorderedWatches",
    "repeated-events": "mews.harness.api_faults.reads:RepeatedEvents",
    "broken-watch": "mews.harness.api_faults.reads:BrokenWatch",
    "stale-reads": "mews.harness.api_faults.reads:StaleReads",
    "conflict": "mews.harness.api_faults.requests:ConflictAnswer",
    "too-many-requests": "mews.harness.api_faults.requests:BusyAnswer",
    "server-error": "mews.harness.api_faults.requests:ErrorAnswer",
    "lost-answer": "mews.harness.api_faults.requests:LostAnswer",
    "request-timeout": "mews.harness.api_faults.requests:RequestTimeout",
    "slow-request": "mews.harness.api_faults.requests:SlowRequest",
    "frozen-api": "mews.harness.api_faults.requests:FrozenApi",
    "expired-token": "mews.harness.api_faults.requests:ExpiredToken",
    "paused-rpc": "mews.harness.api_faults.rpcs:PausedRpc",
    "frozen-process": "mews.harness.api_faults.processes:FrozenProcess",
}

API_FAULTS: Final = fault_registry(OURS, "component")

API_FILTERS = tuple(name for name in FILTERS if name != "device")
"""When such a fault fires; ``operation`` is a verb."""


def parse_api_fault(spec: Mapping[str, Any]) -> tuple[ChassisFault, FaultTrigger]:
    """Return the fault that a spec describes, and when it fires.

    Raises ValueError naming what is allowed.
    """
    return parse_fault(spec, API_FAULTS, API_FILTERS)
