"""The demo, and what it says when something is not as it should be."""

import re
import subprocess
import sys

import pytest

from mews.harness.demo import STORY, DemoRow, _wrong, manifest
from mews.harness.journal import Journal
from mews.kube.system.system import Pooled


def rows(count=5, **changed):
    return [
        DemoRow(f"GPU-{n}", f"0-{n}", "A", n == 0, **{"in_table": True, "in_pod_resources": True, **changed})
        for n in range(count)
    ]


def reported(count=5):
    return {f"0-{n}" for n in range(count)}


def test_five_confirmed_gpus_of_which_one_moved_are_right():
    assert _wrong(rows(), ("0-0",), reported()) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ((rows(4), ("0-0",), reported()), "the process printed 4 UUIDs, expected 5 different ones"),
        ((rows() + rows(1), ("0-0",), reported()), "the process printed 6 UUIDs"),
        ((rows(in_table=False), ("0-0",), reported()), "GPU-0: chassis table and pod resources do not both have it"),
        ((rows(in_pod_resources=False), ("0-0",), reported()), "do not both have it"),
        ((rows(), (), reported()), "0 GPUs moved (none), expected exactly one"),
        ((rows(), ("0-0", "0-1"), reported()), "2 GPUs moved (0-0, 0-1), expected exactly one"),
        ((rows(), ("0-0",), reported(6)), "pod resources report 6 devices, expected 5"),
    ],
)
def test_what_is_wrong_is_said(wrong, says):
    assert any(says in text for text in _wrong(*wrong))


def test_only_the_demos_own_pod_is_told_of():
    journal = Journal(lambda: 0.0)
    ours = journal.write("api", "pod/default/wants-five", "bound", uid="u", node="host-1")
    other = journal.write("api", "pod/default/other", "bound", uid="v", node="host-1")
    assert STORY["api", "bound"](ours, "x.com/gpu") == "bound to host-1"
    assert STORY["api", "bound"](other, "x.com/gpu") is None


def test_only_the_pooled_resource_of_a_node_is_told_of():
    journal = Journal(lambda: 0.0)
    line = journal.write("api", "node/host-1", "allocatable", resource="x.com/gpu", old="4", new="3")
    assert STORY["api", "allocatable"](line, "x.com/gpu") == "x.com/gpu allocatable: 4 -> 3"
    assert STORY["api", "allocatable"](line, "y.com/gpu") is None


def test_the_pod_asks_the_scheduler_that_pools_for_what_it_pools():
    spec = manifest(Pooled("x.com/gpu", "GPU", "x-scheduler", "X_DEVICES"))["spec"]
    assert spec["schedulerName"] == "x-scheduler"
    assert spec["containers"][0]["resources"] == {"limits": {"x.com/gpu": "5"}}


@pytest.mark.wall
@pytest.mark.parametrize("dialect", ["h3api", "resource-pool"])
def test_exactly_one_gpu_moves_through_either_dialect(dialect):
    command = [sys.executable, "-m", "mews.harness.cli", "demo", "--dialect", dialect]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"PASSED in \d+\.\d s: exactly one GPU moved", done.stdout)
    assert len(re.findall(r"^GPU-\S+ +\S+ +A +yes +yes", done.stdout, re.MULTILINE)) == 5
    assert done.stderr == ""
