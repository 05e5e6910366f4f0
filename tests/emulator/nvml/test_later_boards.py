"""Calls about boards of Hopper and Blackwell: their links' bandwidth, streamed metrics, power profiles, secrets."""

import ctypes

import pytest

from mews.emulator.nvml.driver_settings import DriverSettings
from tests.emulator.nvml.hosts import gpu

INVALID, NOT_SUPPORTED, NO_PERMISSION, MISMATCH = 2, 3, 4, 25


class LinkModes(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint), ("modes", ctypes.c_ubyte * 23), ("count", ctypes.c_ubyte))


class LinkMode(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint), ("best", ctypes.c_uint), ("mode", ctypes.c_ubyte))


class Settings(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint) for name in ("version", "environment", "feature", "tools", "multi"))


class Profile(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint), ("id", ctypes.c_uint), ("priority", ctypes.c_uint),
                ("conflicting", ctypes.c_uint * 8))  # fmt: skip


class Profiles(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint), ("known", ctypes.c_uint * 8), ("each", Profile * 255))


class ProfilesNow(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint), ("known", ctypes.c_uint * 8), ("requested", ctypes.c_uint * 8),
                ("enforced", ctypes.c_uint * 8))  # fmt: skip


def versioned(kind, version=1):
    made = kind()
    made.version = ctypes.sizeof(kind) | version << 24
    return made


VERSIONED = [
    ("nvmlDeviceGetNvlinkSupportedBwModes", LinkModes),
    ("nvmlDeviceGetNvlinkBwMode", LinkMode),
    ("nvmlDeviceSetNvlinkBwMode", LinkMode),
    ("nvmlDeviceWorkloadPowerProfileGetProfilesInfo", Profiles),
    ("nvmlDeviceWorkloadPowerProfileGetCurrentProfiles", ProfilesNow),
]


@pytest.mark.parametrize(("name", "kind"), VERSIONED)
def test_a_struct_says_its_version_and_the_board_is_of_blackwell(read, name, kind):
    read.show(gpu(0, "B200"), switched=True)
    call = getattr(read.calls, name)
    assert call(read.device, None) == INVALID
    for version in (0, 2):
        assert call(read.device, ctypes.byref(versioned(kind, version))) == MISMATCH
    assert call(None, ctypes.byref(versioned(kind))) == INVALID
    read.show(gpu(0, "H100-SXM"), switched=True)
    assert call(read.device, ctypes.byref(versioned(kind))) == NOT_SUPPORTED


def test_a_gpu_tells_its_links_modes_and_which_is_the_best(read, monkeypatch):
    modes, mode = versioned(LinkModes), versioned(LinkMode)
    for number, best in ((0, 1), (3, 0)):
        read.show(gpu(0, "B200", link_bandwidth=number), switched=True)
        assert read.calls.nvmlDeviceGetNvlinkBwMode(read.device, ctypes.byref(mode)) == 0
        assert (mode.mode, mode.best) == (number, best)
    assert read.calls.nvmlDeviceGetNvlinkSupportedBwModes(read.device, ctypes.byref(modes)) == 0
    assert list(modes.modes[: modes.count]) == [0, 1, 2, 3, 4]
    mode.mode, mode.best = 5, 0
    assert read.calls.nvmlDeviceSetNvlinkBwMode(read.device, ctypes.byref(mode)) == INVALID
    monkeypatch.setenv("MEWS_NVML_RIGHTS", "none")
    mode.mode = 1
    assert read.calls.nvmlDeviceSetNvlinkBwMode(read.device, ctypes.byref(mode)) == NO_PERMISSION


def test_a_gpu_tells_whether_its_metrics_are_streamed(read):
    state = ctypes.c_uint(7)
    for on in (False, True):
        read.show(gpu(0, "H100", settings=DriverSettings(streaming=on)))
        assert read.calls.nvmlGpmQueryIfStreamingEnabled(read.device, ctypes.byref(state)) == 0
        assert state.value == on
    assert read.calls.nvmlGpmQueryIfStreamingEnabled(read.device, None) == INVALID
    read.show(gpu(0, "A100"))
    assert read.calls.nvmlGpmQueryIfStreamingEnabled(read.device, ctypes.byref(state)) == NOT_SUPPORTED


def test_profiles_are_listed_and_none_is_requested(read):
    read.show(gpu(0, "GB200"))
    every, now = versioned(Profiles), versioned(ProfilesNow)
    every.known[7] = every.each[200].id = now.enforced[3] = 9
    assert read.calls.nvmlDeviceWorkloadPowerProfileGetProfilesInfo(read.device, ctypes.byref(every)) == 0
    assert read.calls.nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(read.device, ctypes.byref(now)) == 0
    assert list(every.known) == list(now.known) == [0b10000011101111, *[0] * 7]
    assert [every.each[place].id for place in (7, 13, 200)] == [7, 13, 0]
    assert [*now.requested, *now.enforced] == [0] * 16


def test_confidential_computing_is_off_and_possible_from_hopper_on(read):
    ability, ready, settings = (ctypes.c_uint * 2)(), ctypes.c_uint(7), versioned(Settings)
    for model, capable, code in (("H100", 1, 0), ("T4", 0, NOT_SUPPORTED)):
        read.show(gpu(0, model))
        assert read.calls.nvmlSystemGetConfComputeCapabilities(ctypes.byref(ability)) == 0
        assert list(ability) == [0, capable]
        assert read.calls.nvmlSystemGetConfComputeGpusReadyState(ctypes.byref(ready)) == code
    assert ready.value == 0
    assert read.calls.nvmlSystemGetConfComputeSettings(ctypes.byref(settings)) == 0
    assert (settings.environment, settings.feature, settings.tools, settings.multi) == (0, 0, 0, 0)
    settings.version = 0
    assert read.calls.nvmlSystemGetConfComputeSettings(ctypes.byref(settings)) == MISMATCH
    for name in ("Capabilities", "GpusReadyState", "Settings"):
        assert getattr(read.calls, f"nvmlSystemGetConfCompute{name}")(None) == INVALID
