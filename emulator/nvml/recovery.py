"""What a GPU needs to recover, as ``nvidia-smi -q`` and NVML_FI_DEV_GET_GPU_RECOVERY_ACTION say it.

Source: NVIDIA's "Analyzing Xid Errors with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors): the immediate action
of each XID (RESET_GPU, RESTART_BM); of 48 and 74, which name a workflow, and of 94, the text. A row that waits for its
remapping is a reason to drain and reset. The action is cleared when the driver takes the GPU anew.

Of a GPU that fell off the bus (79) no handle is given, and those that are open are GPU_IS_LOST: nvml.h of go-nvml
v0.13.4-0 at nvmlDeviceGetHandleByIndex_v2, and leptonai/gpud issue 604 (``ERROR_GPU_IS_LOST`` after XID 79).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mews.emulator.nvml.state import NvmlEvent

RECOVERED, RESET, REBOOT, DRAIN_AND_RESET = "None", "Reset", "Reboot", "Drain and Reset"
RESETTING_XIDS = frozenset({46, 48, 62, 64, 74, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158})
REBOOTING_XIDS = frozenset({79})
DRAINING_XIDS = frozenset({94})
"""Other programs go on; the GPU is to be reset "when convenient"."""
_BY_GRAVITY = (RECOVERED, DRAIN_AND_RESET, RESET, REBOOT)


def _action_of(xid: int) -> str:
    if xid in REBOOTING_XIDS:
        return REBOOT
    if xid in RESETTING_XIDS:
        return RESET
    return DRAIN_AND_RESET if xid in DRAINING_XIDS else RECOVERED


def recovery_action(events: Iterable[NvmlEvent], bus_id: str) -> str:
    """Return the action of a GPU by its driver's events, oldest first."""
    action = RECOVERED
    for event in events:
        if event.bus_id != bus_id:
            continue
        if event.kind in ("bind", "unbind"):
            action = RECOVERED
        elif event.kind == "xid":
            action = max(action, _action_of(event.data), key=_BY_GRAVITY.index)
    return action
