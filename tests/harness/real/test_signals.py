"""What a keeper is told, over a kubelet that may be restarting."""

import asyncio

import pytest

from mews.harness.clock import run_virtual
from mews.harness.clusters.real.signals import signal
from mews.harness.clusters.real.supervisor import KILL
from mews.harness.errors import RequirementError
from mews.kube.api.errors import ForbiddenError, ServerError, UnavailableError
from mews.kube.client.port import ExecResult

RESTARTING = (UnavailableError("connection refused"), ServerError("unable to upgrade connection: pod does not exist"))


class Pods:
    """An API whose exec gives these answers one after another, the last one for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def exec(self, namespace, pod, command, *, container=None):
        self.asked.append((namespace, pod, tuple(command), container))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def told(*answers):
    """What was asked, and after how many seconds it was over or given up."""
    pods = Pods(*answers)

    async def main():
        try:
            await signal(pods, "kubecomp", "pod-1", "device-manager/host-1", KILL)
        finally:
            pods.seconds = asyncio.get_running_loop().time()

    return pods, main


def test_a_kubelet_that_restarts_is_waited_for():
    pods, main = told(*RESTARTING, ExecResult(0))
    run_virtual(main)
    assert pods.asked == [("kubecomp", "pod-1", KILL, "device-manager")] * 3


def test_one_that_stays_away_is_given_up_with_its_last_words():
    pods, main = told(*RESTARTING)
    with pytest.raises(
        RequirementError, match=r"device-manager/host-1: pod kubecomp/pod-1 not reached within 60 s: .*does not exist"
    ):
        run_virtual(main)
    assert 60 < pods.seconds < 62


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ForbiddenError("pods/exec is forbidden"), "exec in pod kubecomp/pod-1: pods/exec is forbidden"),
        (ExecResult(1, stderr=b"no such file\n"), "no such file"),
    ],
)
def test_what_will_not_change_is_told_at_once(answer, said):
    pods, main = told(answer)
    with pytest.raises(RequirementError, match=said):
        run_virtual(main)
    assert len(pods.asked) == 1
