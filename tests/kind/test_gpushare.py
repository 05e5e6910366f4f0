"""GPU Share with Kubernetes' own scheduler, API server and kubelets: the design's three nodes, and two replicas of the
extender of which one is killed. The scenarios are the shipped ones, on the hosts of the suite's one cluster."""

import re
from pathlib import Path

import pytest
import yaml

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import parse_scenario, shipped
from tests.kind.test_scenarios import SPEED

pytestmark = pytest.mark.kind

HOSTS = {"n1": "host-1", "n2": "host-2", "n3": "host-3"}


def on_the_suites_hosts(name):
    """The scenario with n1 to n3 called as the demo's hosts, with as many processors."""
    hardware = yaml.safe_load(Path(shipped("hardware", "seed-001")).read_text())
    demo = yaml.safe_load(Path(shipped("hardware", "demo")).read_text())
    cpus = {host["name"]: host["cpus"] for host in demo["hosts"]}
    hardware["hosts"] = [
        {**host, "cpus": cpus[HOSTS[host["name"]]]} for host in hardware["hosts"] if host["name"] in HOSTS
    ]
    path = Path(shipped("scenario", f"gpushare/{name}"))
    inline = f"hardware: {yaml.safe_dump(hardware, default_flow_style=True)}"
    text = path.read_text().replace("hardware: seed-001", inline)
    return parse_scenario(re.sub(r"\bn[123]\b", lambda found: HOSTS[found[0]], text), path, {})


@pytest.mark.parametrize("name", ["01-three-nodes", "10-two-replicas"])
def test_the_unmodified_scheduler_shares_gpus_by_our_extender(name, shared, tmp_path):
    options = RunOptions("kind", "wall", SPEED)
    run = Engine(options, artefacts=tmp_path, session=shared).run(on_the_suites_hosts(name))
    assert run.result.verdict == "passed", f"{run.result.reason}\n{run.result.report}"
    assert run.result.violations == ()
