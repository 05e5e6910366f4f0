"""The ports of a cluster of emulated nodes: what virtual time cannot do is absent, not refused twenty times."""

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.clock import run_virtual
from mews.harness.clusters import open_cluster
from mews.harness.journal import LINES_KEPT
from mews.harness.scenario.loader import parse_scenario

EMPTY = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: x}\nhardware: demo.yaml\n"


def opened(play):
    async def main():
        cluster = await open_cluster(parse_scenario(EMPTY, shipped("hardware", "demo").parent / "x.yaml"))
        try:
            return await play(cluster)
        finally:
            await cluster.close()

    return run_virtual(main)


def test_in_virtual_time_there_are_no_processes_and_no_server_of_hosts():
    async def play(cluster):
        assert cluster.time == "virtual"
        assert (cluster.ports.processes, cluster.ports.host_server) == (None, None)
        assert cluster.ports.program("default-scheduler", {}) is None
        assert "hosts" not in cluster.components()
        with pytest.raises(RuntimeError, match="no other process can reach the cluster"):
            cluster.ready()
        with pytest.raises(ValueError, match="hosts: do not run as processes"):
            await cluster.kill("hosts")

    opened(play)


def test_a_killed_chassis_comes_back_with_its_table():
    async def play(cluster):
        before = await cluster.hardware.table()
        await cluster.kill("chassis/A")
        await cluster.start("chassis/A")
        assert await cluster.hardware.table() == before

    opened(play)


def test_one_that_stays_up_remembers_the_latest_of_its_journal_and_of_what_components_log():
    async def play(cluster):
        cluster.keep_alive()
        for journal in (cluster.journal, cluster.records):
            for _ in range(3 * LINES_KEPT):
                journal.write("step", "a", "begun")
        return [len(journal.lines()) for journal in (cluster.journal, cluster.records)]

    assert max(opened(play)) <= 2 * LINES_KEPT
