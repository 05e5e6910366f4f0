"""Waiting until a stack runs, over an API server that does not always answer."""

import asyncio

import pytest

from mews.harness.clock import run_virtual
from mews.harness.clusters.real.rollout import Rollout
from mews.harness.errors import RequirementError
from mews.kube.api.errors import UnavailableError
from mews.kube.api.resources import PODS
from mews.kube.client.port import ObjectList


class Api:
    """Lists nothing, after it could not be reached for a number of questions."""

    def __init__(self, failures):
        self.failures = failures
        self.asked = 0

    async def list(self, resource, **_):
        self.asked += 1
        if self.asked <= self.failures:
            raise UnavailableError("connection refused")
        return ObjectList([], "1")


def test_an_api_server_that_does_not_answer_for_a_moment_is_asked_again():
    api, said = Api(5), []
    run_virtual(lambda: Rollout(api, "kubecomp", said.append).ready())
    assert said == ["waiting for the API server: connection refused"] * 5
    assert api.asked == 5 + 3


def test_one_that_stays_away_is_given_up_in_the_end():
    async def main():
        with pytest.raises(
            RequirementError, match=r"not within 240 s: the API server: connection refused: nobody can be asked why"
        ):
            await Rollout(Api(10**6), "kubecomp", lambda _: None).ready()
        return asyncio.get_running_loop().time()

    assert 240 < run_virtual(main) < 242


def test_a_pod_that_still_ends_is_waited_for():
    class Ending(Api):
        async def list(self, resource, **more):
            found = await super().list(resource, **more)
            ending = {"metadata": {"name": "chassis-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
            return ObjectList([ending], "1") if resource == PODS and self.asked < 10 else found

    said = []
    run_virtual(lambda: Rollout(Ending(0), "kubecomp", said.append).ready())
    assert set(said) == {"waiting for chassis-1 still ends"}
