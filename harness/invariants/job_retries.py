"""How soon a Job makes another pod after one of its pods has failed."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.journal import Line
from mews.kube.system.invariant import Breach

FIRST_S, MOST_S = 10.0, 600.0
"""Back-off after the first failure, doubling with each in a row up to the most (pkg/controller/job/backoff_utils.go,
DefaultJobPodFailureBackOff and MaxJobPodFailureBackOff of job_controller.go)."""
SEEN_S = 2.0
"""A kubelet looks at its containers once a second (pkg/kubelet/pleg), and times of a status are whole seconds."""
_FAILED, _COMPLETED = "PodFailed", "PodCompleted"


class JobRetries:
    """Given how pods end, and which pods each Job makes, it finds pods that are made too soon. The clock starts as the
    containers have ended, in whole seconds, as a pod's status tells it."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        """Pod -> its Job."""
        self._failures: dict[str, list[Line]] = {}
        """Job -> the ends of its pods that failed since one succeeded."""

    def ends(self, line: Line) -> None:
        """A condition of a pod: of one that has ended it says how."""
        owner = self._owners.get(line.actor) if line.fields["type"] == "Ready" else None
        if owner is None:
            return
        if line.fields["reason"] == _COMPLETED:
            self._failures.pop(owner, None)
        elif line.fields["reason"] == _FAILED:
            self._failures.setdefault(owner, []).append(line)
            del self._owners[line.actor]

    def gone(self, pod: str) -> None:
        """A pod is deleted, and counts no more: its Job may be gone as well, and another one have its name."""
        self._owners.pop(pod, None)
        for owner, failures in list(self._failures.items()):
            left = [each for each in failures if each.actor != pod]
            if left:
                self._failures[owner] = left
            else:
                del self._failures[owner]

    def made(self, owner: str, pod: str, made: Line) -> Iterator[Breach]:
        """Yield a controller has made that pod for that owner."""
        if not owner.startswith("job/"):
            return
        self._owners[pod] = owner
        failures = self._failures.get(owner, ())
        if failures:
            wait_s = min(FIRST_S * 2.0 ** (len(failures) - 1), MOST_S)
            waited_s = made.t - failures[-1].t
            if waited_s < wait_s - SEEN_S:
                what = f"{owner} makes {pod} {waited_s:.1f} s after its failure {len(failures)}, {wait_s:g} s must pass"
                yield Breach((owner, "too soon", str(made.number)), what, made, after=failures[-1])
