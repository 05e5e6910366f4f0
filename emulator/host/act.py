"""An operator's action as data, for the control API ``control`` and for scenarios.

``do`` is one of ``ACTIONS``; ``device`` (the chassis' ID or the GPUID) or ``bdf`` names whom it concerns.

| do | and | is |
|---|---|---|
| remove, bind, unbind | device, driver | a write into that file of sysfs |
| rescan | below (a bridge) | likewise |
| power | device, on | the slot's ``power`` |
| machine-power | on | the whole server is switched off, or on and boots |
| write | path, text | any write into the host's tree; ``{bdf}``, ``{slot}`` and ``{bridge}`` stand for the device's |
| unlink-node | device | ``rm /dev/nvidiaN`` |
| drain, persistence | device, on | NVML's calls of those names |
| remove-gpu | device | nvmlDeviceRemoveGpu |
| reset-gpu | device | ``nvidia-smi --gpu-reset`` |
| set-gpu | device, setting, values | one of NVML's setters, described below |
| mig | device, change, values | a change of MIG, described below |
| discover | | nvmlDeviceDiscoverGpus |
| hold, release | device (hold: or all), key, name, pid, load | a process opens and closes the GPU, and loads it |
| persistence-daemon | on | a program that switches persistence mode on whenever it is off |

``set-gpu`` takes a ``setting`` and its ``values``. ``power-limit`` is in milliwatts, ``fan`` in percent,
``target-temperature`` in degrees Celsius. ``gpu-clocks`` and ``memory-clocks`` are the lowest and the highest MHz;
``applications-clocks`` are the MHz of memory and multiprocessors. Without values, the default is restored.
``compute-mode`` is 0, 2 or 3, ``ecc`` is 0 or 1, and ``ecc-errors`` is 0 or 1.

``mig`` takes a ``change`` and its ``values``. ``mode`` is 0 or 1. ``create-gpu`` takes a profile's ID, ``destroy-gpu``
an instance's. ``create-compute`` takes a GPU instance's ID and a profile's, ``destroy-compute`` the IDs of both
instances. An additional number places a new instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from mews.emulator.host.control import SETTERS
from mews.emulator.host.errors import DeviceInUseError
from mews.emulator.host.function import Function
from mews.emulator.host.holders import Holder
from mews.emulator.host.mig import MIG_ACTS
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.tree import HostTree
from mews.emulator.telemetry.load import IDLE, parse_load
from mews.names import must_be

Do = Literal[
    "remove",
    "bind",
    "unbind",
    "rescan",
    "power",
    "machine-power",
    "write",
    "unlink-node",
    "drain",
    "persistence",
    "set-gpu",
    "mig",
    "remove-gpu",
    "reset-gpu",
    "discover",
    "hold",
    "release",
    "persistence-daemon",
]
ACTIONS: tuple[str, ...] = get_args(Do)
TAKEN: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(("remove", "unlink-node", "remove-gpu", "reset-gpu"), (("device",), ())),
    **dict.fromkeys(("bind", "unbind"), (("device",), ("driver",))),
    **dict.fromkeys(("power", "drain", "persistence"), (("device",), ("on",))),
    **dict.fromkeys(("rescan", "discover"), ((), ())),
    **dict.fromkeys(("hold", "release"), ((), ("device", "key"))),
    "write": (("path",), ("text", "device")),
    "set-gpu": (("device", "setting"), ("values",)),
    "mig": (("device", "change"), ("values",)),
    "machine-power": (("on",), ()),
    "persistence-daemon": ((), ("on",)),
}
"""Action -> what it must name, and what it may, in scenarios."""
HOLDER_KEYS = ("key", "pid", "name", "uuids", "computing", "load", "cgroup")
MOST_PID = MOST_NUMBER = (1 << 32) - 1
KEYS = ("do", "device", "bdf", "driver", "below", "on", "path", "text", "setting", "change", "values", *HOLDER_KEYS)


# Complex: one case for each action that may have to wait.
def begin(tree: HostTree, action: Mapping[str, Any], now_s: float) -> PendingAction:  # noqa: C901
    """Begin an action; it may have to wait.

    Raises HostRefusalError as the host does, ValueError for what is no action, FileNotFoundError, PermissionError for a
    path that cannot be written.
    """
    for key in action:
        if key not in KEYS:
            raise ValueError(f"action {key!r}: unknown key; allowed: {', '.join(KEYS)}")
    do = action.get("do")
    if do not in ACTIONS:
        raise ValueError(f"do {do!r}: {must_be(do, ACTIONS)}")
    # One case per action that may have to wait, each passing on other keys: a table of lambdas would hide which.
    # Complexity 11 is the number of actions.
    host, operator = tree.host, tree.operator
    host.settle(now_s)
    match do:
        case "remove":
            return operator.remove(_function(tree, action).bdf, now_s)
        case "bind":
            return operator.bind(_function(tree, action).bdf, now_s, action.get("driver"))
        case "unbind":
            return operator.unbind(_function(tree, action).bdf, now_s, action.get("driver"))
        case "rescan":
            return operator.rescan(now_s, action.get("below"))
        case "power":
            return operator.power(_function(tree, action).slot, bool(action.get("on", True)), now_s)
        case "write":
            return tree.write(filled(tree, action), str(action.get("text", "1")), now_s)
        case "discover":
            return tree.nvml_calls.discover(now_s, action.get("below"))
        case "drain" | "persistence" | "set-gpu" | "mig" | "remove-gpu" | "reset-gpu":
            return _call(tree, action, now_s)
    _at_once(tree, action, now_s)
    return PendingAction(str(do), lambda: True, lambda: None, done=True)


def _at_once(tree: HostTree, action: Mapping[str, Any], now_s: float) -> None:
    host, operator = tree.host, tree.operator
    match action["do"]:
        case "unlink-node":
            minor = _function(tree, action).minor
            operator.unlink_node(-1 if minor is None else minor, now_s)
        case "machine-power":
            host.set_power(bool(action.get("on", True)), now_s)
        case "persistence-daemon":
            tree.nvml_calls.persistence_daemon(bool(action.get("on", True)), now_s)
        case "hold":
            host.hold(_holder(tree, action), now_s)
        case "release":
            host.release(str(action.get("key", "process")), now_s)


def _call(tree: HostTree, action: Mapping[str, Any], now_s: float) -> PendingAction:
    """NVML's hot-plug calls, which take their time."""
    calls, do, on = tree.nvml_calls, action["do"], bool(action.get("on", True))
    bdf = _function(tree, action).bdf
    setting, numbers = _setting(action) if do == "set-gpu" else ("", ())
    if do == "mig":
        setting, numbers = _change(action)

    def act() -> None:
        if do == "drain":
            calls.drain(bdf, on, tree.host.now_s)
        elif do == "persistence":
            calls.persistence(bdf, on, tree.host.now_s)
        elif do == "set-gpu":
            calls.set_gpu(bdf, setting, numbers, tree.host.now_s)
        elif do == "mig":
            if calls.mig(bdf, setting, numbers, tree.host.now_s) and setting == "mode":
                raise DeviceInUseError(f"{bdf}: MIG mode is kept by programs or instances")
        elif do == "reset-gpu":
            calls.reset_gpu(bdf, tree.host.now_s)
        else:
            calls.remove_gpu(bdf, tree.host.now_s)

    return calls.called(f"{do} of {bdf}", act, now_s, removal=do in ("remove-gpu", "reset-gpu"))


def _setting(action: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    setting = action.get("setting")
    if setting not in SETTERS:
        raise ValueError(f"setting {setting!r}: {must_be(setting, SETTERS)}")
    return setting, _numbers(action.get("values", []))


def _change(action: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    change = action.get("change")
    if change not in MIG_ACTS:
        raise ValueError(f"change {change!r}: {must_be(change, MIG_ACTS)}")
    return change, _numbers(action.get("values", []))


def _numbers(values: Any) -> tuple[int, ...]:
    numbers = values if isinstance(values, list | tuple) else [values]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MOST_NUMBER:
            raise ValueError(f"values {str(number)[:40]}: must be whole numbers from 0 to {MOST_NUMBER}")
    return tuple(numbers)


def _holder(tree: HostTree, action: Mapping[str, Any]) -> Holder:
    uuids = action.get("uuids")
    if uuids is not None and not isinstance(uuids, list | tuple):
        raise ValueError("uuids: must be a list")
    if uuids is None and "device" not in action and "bdf" not in action:
        # As nvmlInit does: every GPU that the driver has.
        uuids = [f.device.uuid for f in tree.host.bus.functions() if f.has_node]
    elif uuids is None:
        uuids = [_function(tree, action).device.uuid]
    return Holder(
        key=str(action.get("key", "process")),
        uuids=tuple(str(uuid) for uuid in uuids),
        pid=_pid(action.get("pid", 0)),
        name=str(action.get("name", "")),
        computing=bool(action.get("computing", False)),
        load=parse_load(action["load"]) if action.get("load") is not None else IDLE,
        cgroup=str(action.get("cgroup", "/")),
    )


def _pid(value: Any) -> int:
    try:
        pid = int(value)
    except (TypeError, ValueError, OverflowError):
        pid = -1
    if not 0 <= pid <= MOST_PID:
        raise ValueError(f"pid {str(value)[:40]!r}: must be a number from 0 to {MOST_PID}")
    return pid


def _function(tree: HostTree, action: Mapping[str, Any]) -> Function:
    if "bdf" in action:
        return tree.host.bus.find(str(action["bdf"]))
    if "device" not in action:
        raise ValueError(f"{action['do']}: device or bdf is required")
    return tree.host.bus.holding(str(action["device"]))


def filled(tree: HostTree, action: Mapping[str, Any]) -> str:
    """Return the path of a ``write`` with the device's names filled in.

    Raises NoSuchDeviceError, ValueError.
    """
    path = str(action.get("path", ""))
    if "{" not in path:
        return path
    function = _function(tree, action)
    names = {"bdf": function.bdf, "slot": str(function.slot), "bridge": function.bridge}
    for name, value in names.items():
        path = path.replace("{" + name + "}", value)
    return path
