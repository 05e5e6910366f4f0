"""Scheduler, device plugin and operator of one's own on a cluster that runs nothing else, tested by the plugin."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.mews(stack="none")


@contextlib.contextmanager
def running(cluster, *command):
    """A program of ours beside the cluster."""
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    process = subprocess.Popen([sys.executable, *command], cwd=HERE, env=environment)
    try:
        yield
        assert process.poll() is None, f"{command} has ended"
    finally:
        process.terminate()
        process.wait()


def pod(name, scheduler="default-scheduler", **limits):
    """One that runs until it is deleted."""
    container = {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": limits}}
    spec = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_the_scheduler_binds_pods_of_its_name_alone(mews_cluster):
    with running(mews_cluster, "scheduler.py"):
        mews_cluster.apply(pod("mine", "first-fit"), pod("other", "somebody-else"))
        mews_cluster.wait(pod={"name": "mine", "phase": "Running", "node": "host-1"})
        mews_cluster.step({"assert": {"pod": {"name": "other", "phase": "Pending"}}})


def test_the_device_plugin_gives_a_container_its_widgets(mews_cluster):
    with running(mews_cluster, "device_plugin.py", mews_cluster.nodes["host-2"]["device_plugins"], "3"):
        mews_cluster.wait(node={"host": "host-2", "allocatable": {"example.com/widget": 3}})
        mews_cluster.apply(pod("a", **{"example.com/widget": "2"}))
        mews_cluster.wait(pod={"name": "a", "phase": "Running", "node": "host-2"})
        mews_cluster.step(
            {"exec": {"pod": "a", "command": ["sh", "-c", "echo $WIDGETS"], "stdout": {"$regex": "widget-"}}}
        )


def test_the_operator_makes_a_pod_a_member(mews_cluster):
    with running(mews_cluster, "-m", "kopf", "run", "--all-namespaces", "operator_kopf.py"):
        mews_cluster.apply({"kind": "ConfigMap", "metadata": {"name": "team", "labels": {"gang": "2"}}})
        mews_cluster.wait(pod={"name": "team-0", "phase": "Running"})
        mews_cluster.wait(pod={"name": "team-1", "phase": "Running"})
