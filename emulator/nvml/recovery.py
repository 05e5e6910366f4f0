"""What a GPU needs to recover, as ``nvidia-smi -q`` and NVML_FI_DEV_GET_GPU_RECOVERY_ACTION say it.

Source: NVIDIA's "Xid Errors" (docs.nvidia.com/deploy/xid-errors): the immediate action of each XID. A row that waits
for its remapping is a reason to drain and reset. The action is cleared when the driver takes the GPU anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mews.emulator.nvml.state import NvmlEvent

RECOVERED, RESET, REBOOT, DRAIN_AND_RESET = "None", "Reset", "Reboot", "Drain and Reset"
RESETTING_XIDS = frozenset({62, 64, 95, 109, 110, 119, 120, 136, 140, 143})
REBOOTING_XIDS = frozenset({79})


def recovery_action(events: Iterable[NvmlEvent], bus_id: str) -> str:
    """The action of a GPU by its driver's events, oldest first."""
    action = RECOVERED
    for event in events:
        if event.bus_id != bus_id:
            continue
        if event.kind in ("bind", "unbind"):
            action = RECOVERED
        elif event.kind == "xid" and event.data in REBOOTING_XIDS:
            action = REBOOT
        elif event.kind == "xid" and event.data in RESETTING_XIDS and action == RECOVERED:
            action = RESET
    return action
