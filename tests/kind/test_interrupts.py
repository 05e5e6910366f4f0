"""Interrupted while a cluster is being created: nothing is left behind that `mews down` does not remove."""

import signal

import pytest

from tests.kind.commands import docker_has, interrupt, passed, started, until

pytestmark = pytest.mark.kind


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_while_a_cluster_is_created_leaves_nothing(number, state, tmp_path):
    before = docker_has()
    process = started(tmp_path, "run", "demo", "--cluster", "kind")
    name = f"mews-{process.pid}"
    until(process, lambda: docker_has(name)["containers"], "a node's container")
    interrupt(process, number)
    if number is signal.SIGINT:
        assert docker_has() == before, "it was deleted at once"
    passed(started(tmp_path, "down", "--all"))
    assert docker_has() == before
    assert not list(state.rglob("kind.json"))
