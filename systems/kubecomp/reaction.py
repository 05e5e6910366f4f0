"""How soon KubeComp follows its chassis, from its own timeouts."""

from __future__ import annotations

from mews.kube.system.reaction import HardwareTimes, Reaction
from mews.systems.kubecomp.config import KubeCompConfig


def reaction(config: KubeCompConfig, times: HardwareTimes) -> Reaction:
    """Return the longest of each, hardware and components undisturbed."""
    return Reaction(notice_s=_notice_s(config, times), repair_s=_repair_s(config, times))


def _notice_s(config: KubeCompConfig, times: HardwareTimes) -> float:
    """DevMgr believes that a device is gone after ``vanish_reads`` readings; one more is under way as it goes, and may
    hang for as long as it is waited for. A device asked back is announced by the reading after the next. One that came
    to a host that does not notice by itself is there after the rescan that finds it."""
    from mews.systems.kubecomp.handover import rescan_wait_s

    timing, wait_s = config.timing, 0.0
    if config.removal == "orderly" and times.unnoticed_s is not None:
        wait_s = rescan_wait_s(times.unnoticed_s, timing)
    read_s = min(times.read_s, timing.chassis_timeout_s)
    rounds = max(timing.vanish_reads, 2) + 1
    return (
        rounds * (timing.device_poll_s + read_s)
        + timing.withdrawal_check_s
        + max(wait_s + times.arrive_s, times.leave_s)
    )


def _repair_s(config: KubeCompConfig, times: HardwareTimes) -> float:
    """Return a device whose move cannot go on is tried again after ``requeue_last_s``, once the pods that wait had
    their turn: one turn is a withdrawal, a detach and an attach, each read back. A host gives up devices one after the
    other; who shares them is waited for until it says that it lets go."""
    timing = config.timing
    backoff_s = timing.retry_backoff_s * 2.0 ** max(timing.retries - 2, 0)
    read_back_s = timing.read_back_bound_s + timing.read_back_poll_s + min(times.read_s, timing.chassis_timeout_s)
    between_s = read_back_s + backoff_s
    writes_s = min(times.detach_s, timing.chassis_timeout_s) + min(times.attach_s, timing.chassis_timeout_s)
    turn_s = times.release_s + _withdrawal_s(config, times.devices) + writes_s + 2 * between_s
    return between_s + timing.requeue_last_s + timing.pool_poll_s + turn_s


def _withdrawal_s(config: KubeCompConfig, devices: int) -> float:
    per_device_s = config.timing.removal_timeout_s if config.removal == "orderly" else 0.0
    return config.timing.withdrawal_timeout_s + (devices - 1) * per_device_s
