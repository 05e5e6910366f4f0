"""What NVML's setters change on a host: refused or done, and how long it lasts (NVML API reference, "Device Commands").

Without persistence mode the driver shuts a GPU down once nobody has it open, and what was set is gone. The compute mode
lasts until the driver is unloaded. An ECC mode is kept by the board and counts from the next reset or reboot on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mews.emulator.hardware.cards import gpu_profile
from mews.emulator.host.errors import BadWriteError, DeviceInUseError, NotSupportedError
from mews.emulator.nvml.driver_settings import HOPPER, SETTING_NAMES, has_setting, with_setting
from mews.emulator.telemetry.controls import CONTROL_NAMES, ControlError, controlled

if TYPE_CHECKING:
    from mews.emulator.hardware.gpu_profile import GpuProfile
    from mews.emulator.host.function import Function
    from mews.emulator.host.host import Host

_COMPUTE_MODES, _EXCLUSIVE_THREAD = (0, 2, 3), 1
"""nvmlComputeMode_t: default, prohibited, exclusive process; and the one that is not supported any more."""
ARCH_VOLTA, ARCH_AMPERE = 5, 7
_LINKS = ("nvlink-threshold", "nvlink-bandwidth", "nvlink-own-bandwidth")
_MODES = ("compute-mode", "ecc", "ecc-errors", "accounting", "accounting-clear")
SETTERS = (*CONTROL_NAMES, *_MODES, *_LINKS, *SETTING_NAMES)
"""What can be set, by name."""
VOLATILE, AGGREGATE = 0, 1
MOST_THRESHOLD, BANDWIDTH_MODES = 0x1FFF, 5
"""The longest time that a link waits before it sleeps, in units of 100 us (field 200 of NVML on Hopper), and
``NVML_GPU_NVLINK_BW_MODE_*``."""


# Complex: one case for each setting.
def set_gpu(host: Host, function: Function, name: str, numbers: Sequence[int]) -> None:  # noqa: C901
    """Set one thing of a GPU that the driver has; of ``CONTROL_NAMES`` no numbers restore the default.

    Raises NotSupportedError where the board's model has no such setting, BadWriteError for a value that it does not
    take.
    """
    if name not in SETTERS:
        raise BadWriteError(f"setting {name[:40]!r}: must be one of {', '.join(SETTERS)}")
    profile = gpu_profile(function.device.model)
    _is_supported(name, profile)
    if name in _LINKS:
        _set_links(host, function, name, numbers)
        return
    try:
        match name, numbers:
            case "compute-mode", [mode] if mode in _COMPUTE_MODES:
                function.compute_mode = mode
            case "compute-mode", [mode] if mode == _EXCLUSIVE_THREAD:
                raise NotSupportedError("compute mode exclusive-thread: is not supported any more")
            case "accounting", [0 | 1 as on]:
                if bool(on) != bool(function.accounting):
                    function.account(bool(on))
            case "accounting-clear", []:
                if not function.accounting:
                    raise NotSupportedError("accounting-clear: accounting is off")
                function.account(True)
            case "ecc", [0 | 1 as on]:
                function.ecc_wanted = bool(on)
            case "ecc-errors", [0 | 1] if function.ecc_mode is False:
                raise NotSupportedError("ecc-errors: ECC is off")
            case "ecc-errors", [counter] if counter == VOLATILE:
                function.ecc.corrected = function.ecc.uncorrected = 0
            case "ecc-errors", [counter] if counter == AGGREGATE:
                function.clear_errors()
            case _ if name in _MODES:
                raise BadWriteError(f"{name} {' '.join(map(str, numbers))}: is not a value of it")
            case _ if name in SETTING_NAMES:
                settings = with_setting(function.settings, name, numbers)
                if settings is None:
                    raise BadWriteError(f"{name} {' '.join(map(str, numbers))}: is not a value of it")
                function.settings = settings
            case _:
                function.controls = controlled(function.controls, name, numbers, profile)
    except ControlError as error:
        raise BadWriteError(str(error)) from None
    host.events.emit("gpu-set", function, name=name, values=list(numbers))
    close_unused(host)


def _set_links(host: Host, function: Function, name: str, numbers: Sequence[int]) -> None:
    """The time after which idle links of a GPU sleep, without numbers the longest; or how many links of all GPUs are in
    use, which cannot change while programs compute (nvmlDeviceSetNvLinkDeviceLowPowerThreshold,
    nvmlSystemSetNvlinkBwMode)."""
    match name, tuple(numbers):
        case "nvlink-threshold", ():
            function.link_threshold = None
        case "nvlink-threshold", (units,) if 1 <= units <= MOST_THRESHOLD:
            function.link_threshold = units
        case "nvlink-bandwidth", (mode,) if 0 <= mode < BANDWIDTH_MODES:
            able = [each for each in host.bus.functions() if each.is_gpu and _reducible(gpu_profile(each.device.model))]
            users = [user for each in able for user in host.holders.of(each.device.uuid) if user.computing]
            if users:
                raise DeviceInUseError(f"nvlink-bandwidth: {len(users)} processes use GPUs")
            for each in able:
                each.link_bandwidth = mode
        case "nvlink-own-bandwidth", (mode,) if 0 <= mode < BANDWIDTH_MODES:
            function.link_bandwidth = mode
        case _:
            raise BadWriteError(f"{name} {' '.join(map(str, numbers))}: is not a value of it")
    host.events.emit("gpu-set", function, name=name, values=list(numbers))


def _reducible(profile: GpuProfile) -> bool:
    return profile.architecture == HOPPER and profile.nvlinks > 0


def _is_supported(name: str, profile: GpuProfile) -> None:
    lacks = {
        "nvlink-threshold": profile.architecture < HOPPER or not profile.nvlinks,
        "nvlink-bandwidth": not _reducible(profile),
        "nvlink-own-bandwidth": profile.architecture <= HOPPER or not profile.nvlinks,
        "fan": not profile.fan,
        "ecc": not profile.ecc,
        "ecc-errors": not profile.ecc,
        "gpu-clocks": profile.architecture < ARCH_VOLTA,
        "memory-clocks": profile.architecture < ARCH_AMPERE or profile.architecture == HOPPER,
        "applications-clocks": profile.fan,
        "target-temperature": profile.target_temperatures is None,
    }
    if lacks.get(name) or (name in SETTING_NAMES and not has_setting(name, profile)):
        raise NotSupportedError(f"{name}: this model has no such setting")


def close_unused(host: Host) -> None:
    """The driver shuts down the GPUs that nobody has open: their controls are gone."""
    for function in host.bus.functions():
        if function.controls != function.held and not host.busy(function):
            function.controls = function.held
            host.events.emit("gpu-shut-down", function)
