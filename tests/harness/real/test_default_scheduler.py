"""kube-scheduler's static pod on kind, with extenders and without."""

import subprocess
import sys

import pytest
import yaml

from mews.harness.clusters.kind.scheduler import CONFIG, DefaultScheduler, extended, is_ready

PLAIN = {
    "metadata": {"name": "kube-scheduler"},
    "spec": {
        "containers": [
            {
                "command": [
                    "kube-scheduler", "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
                    "--kubeconfig=/etc/kubernetes/scheduler.conf", "--leader-elect=true",
                ],
                "volumeMounts": [{"mountPath": "/etc/kubernetes/scheduler.conf", "name": "kubeconfig"}],
            }
        ],
        "volumes": [{"hostPath": {"path": "/etc/kubernetes/scheduler.conf"}, "name": "kubeconfig"}],
    },
}  # fmt: skip
DOCKER = """#!{python}
import os, pathlib, subprocess, sys
root = pathlib.Path(os.environ["NODE"])
if sys.argv[4:] and sys.argv[3] == "sh":
    script = sys.argv[5].replace("/etc/kubernetes", str(root)).replace("pkill", "true")
    sys.exit(subprocess.run(["sh", "-c", script]).returncode)
"""


def test_extenders_come_by_a_file_that_overrules_flags():
    made = extended(PLAIN)
    container = made["spec"]["containers"][0]
    assert container["command"][1:] == [
        "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf", f"--config={CONFIG}",
    ]  # fmt: skip
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted["extenders"] == CONFIG
    assert {"name": "extenders", "hostPath": {"path": CONFIG, "type": "File"}} in made["spec"]["volumes"]
    assert "extenders" not in str(PLAIN), "what was given is another's"


@pytest.mark.parametrize(
    ("manifest", "status", "deleted", "with_extenders", "without"),
    [
        (PLAIN, "True", False, False, True),
        (extended(PLAIN), "True", False, True, False),
        (PLAIN, "False", False, False, False),
        (PLAIN, "True", True, False, False),
    ],
)
def test_a_scheduler_is_awaited_by_what_it_was_given(manifest, status, deleted, with_extenders, without):
    pod = {**manifest, "status": {"conditions": [{"type": "Ready", "status": status}]}}
    if deleted:
        pod["metadata"] = {**pod["metadata"], "deletionTimestamp": "now"}
    assert (is_ready(pod, True), is_ready(pod, False)) == (with_extenders, without)


@pytest.fixture
def node(tmp_path, monkeypatch):
    """The folder /etc/kubernetes of a node, which a stand-in for docker works in."""
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin" / "docker"
    docker.write_text(DOCKER.format(python=sys.executable))
    docker.chmod(0o755)
    folder = tmp_path / "kubernetes"
    (folder / "manifests").mkdir(parents=True)
    (folder / "manifests" / "kube-scheduler.yaml").write_text(yaml.safe_dump(PLAIN))
    monkeypatch.setenv("PATH", f"{docker.parent}:/usr/bin:/bin")
    monkeypatch.setenv("NODE", str(folder))
    assert subprocess.run(["docker", "exec", "x", "sh", "-c", "true"], check=True).returncode == 0
    return folder


def state(node):
    file = node / "manifests" / "kube-scheduler.yaml"
    return yaml.safe_load(file.read_text()) if file.exists() else None


@pytest.mark.parametrize("also_killed", [False, True])
def test_whatever_was_done_to_it_it_is_put_back(node, also_killed):
    scheduler = DefaultScheduler("control-plane")
    scheduler.extend([{"urlPrefix": "http://127.0.0.1:17900", "filterVerb": "filter"}])
    command = state(node)["spec"]["containers"][0]["command"]
    assert command[-1].endswith("kube-scheduler-extenders.yaml")
    config = yaml.safe_load((node / "kube-scheduler-extenders.yaml").read_text())
    assert config["extenders"] == [{"urlPrefix": "http://127.0.0.1:17900", "filterVerb": "filter"}]
    if also_killed:
        scheduler.kill()
        assert state(node) is None
    scheduler.plain()
    assert state(node) == PLAIN
    assert [path.name for path in node.iterdir()] == ["manifests"]


def test_killed_it_stays_down_until_it_is_started_and_twice_is_as_once(node):
    scheduler = DefaultScheduler("control-plane")
    for _ in range(2):
        scheduler.kill()
        assert state(node) is None
    for _ in range(2):
        scheduler.start()
        assert state(node) == PLAIN
    scheduler.plain()
    assert state(node) == PLAIN
