"""What a program in the place of ours finds on its machine."""

import json
import os
import sys
from pathlib import Path

import pytest

from mews.harness.clusters.embedded import program_view as view
from mews.harness.engine import Engine
from mews.harness.errors import RequirementError
from mews.harness.options import RunOptions
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario
from mews.harness.scenario.replacement import Replacement
from mews.harness.scenario.requirements import foreseen
from mews.kube.emulated.kubelet.mount_namespace import namespaces_lacking

HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: one}\nhardware: demo\n"
LOOK = """
import json, os, pathlib, signal, ssl, sys, urllib.request
PLUGINS, PODS = "/var/lib/kubelet/device-plugins/kubelet.sock", "/var/lib/kubelet/pod-resources/kubelet.sock"
account = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
token = (account / "token").read_text()
url = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}/api/v1/nodes".format(**os.environ)
request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
trusted = ssl.create_default_context(cafile=str(account / "ca.crt"))
nodes = json.load(urllib.request.build_opener(
    urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted)).open(request))["items"]
found = {
    "node": os.environ["NODE_NAME"],
    "nodes": [each["metadata"]["name"] for each in nodes],
    "library": pathlib.Path(os.environ["LD_LIBRARY_PATH"].split(":")[0], "libnvidia-ml.so.1").exists(),
    "sockets": [each.is_socket() for each in map(pathlib.Path, (PLUGINS, PODS))],
    "mounted": pathlib.Path("/etc/mews-test/mine.txt").read_text(),
}
pathlib.Path(sys.argv[1], os.environ["NODE_NAME"] + ".json").write_text(json.dumps(found))
signal.pause()
"""


def needs_namespaces():
    if namespaces_lacking():
        pytest.skip(f"no user and mount namespace: {namespaces_lacking()}")


def scenario(folder, replaced, steps="[{sleep: 1s}]"):
    (folder / "mine.txt").write_text("of {node}\n")
    path = folder / "one.yaml"
    path.write_text(
        f"{HEAD}stack: {{kubecomp: null, gpushare: {{}}, replace: {{gpushare-device-plugin: {replaced}}}}}\n"
        f"steps: {steps}\n"
    )
    return load_scenario(path)


@pytest.mark.wall
@pytest.mark.parametrize("cluster", ["embedded", "control-plane"])
def test_a_program_of_a_node_finds_what_a_pod_there_finds(cluster, tmp_path):
    needs_namespaces()
    if cluster == "control-plane" and not os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("KUBEBUILDER_ASSETS is not set: no control plane is here")
    (tmp_path / "look.py").write_text(LOOK)
    program = f"{{process: ['{sys.executable}', look.py, '{tmp_path}'], mounts: {{/etc/mews-test/mine.txt: mine.txt}}}}"
    run = Engine(RunOptions(cluster, "wall", 10.0)).run(scenario(tmp_path, program, "[{sleep: 30s}]"))
    assert run.result.verdict == "passed", run.result.report
    hosts = [f"host-{number}" for number in (1, 2, 3)]
    for host in hosts:
        found = json.loads((tmp_path / f"{host}.json").read_text())
        assert found == {
            "node": host, "nodes": hosts, "library": True, "sockets": [True, True], "mounted": f"of {host}\n",
        }  # fmt: skip
    assert not Path("/etc/mews-test").exists()


@pytest.mark.parametrize(
    ("replaced", "says"),
    [
        ("{image: x, mounts: {/etc/a: mine.txt}}", "mounts: applies only to process"),
        ("{process: [x], mounts: {etc/a: mine.txt}}", "mounts: 'etc/a': must be an absolute path without . and .."),
        ("{process: [x], mounts: {/etc/../a: mine.txt}}", "must be an absolute path without . and .."),
        ("{process: [x], mounts: {/etc/a: nowhere.txt}}", "mounts./etc/a: 'nowhere.txt': no such file"),
        ("{process: [x], mounts: {/etc/a: /etc/hostname}}", "lies outside the scenario's folder"),
    ],
)
def test_a_mount_that_cannot_be_is_refused_as_the_file_is_read(replaced, says, tmp_path):
    with pytest.raises(ScenarioError) as refused:
        scenario(tmp_path, replaced)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_on_real_nodes_a_scenario_with_mounts_is_skipped_with_the_reason(tmp_path):
    mounted = scenario(tmp_path, "{process: [x], mounts: {/etc/a: mine.txt}}")
    told = foreseen(mounted, cluster="kind", time="wall", dialect="h3api")
    assert told is not None and "gpushare-device-plugin.mounts: need emulated nodes" in told


def test_without_namespaces_only_the_variables_are_there_and_mounts_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(view, "namespaces_lacking", lambda: "forbidden here")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({"users": [{"user": {"token": "secret"}}]}))
    node = {"env": {"LD_LIBRARY_PATH": "/lib"}, "device_plugins": "/run/n/device-plugins"}
    ready = {"api": "https://127.0.0.1:6443", "kubeconfig": str(kubeconfig), "nodes": {"n": node}}
    seen = view.program_view(ready, "PEM", tmp_path / "account", "n")
    assert (seen.env["LD_LIBRARY_PATH"], seen.env["NODE_NAME"], seen.mounts) == ("/lib", "n", ())
    assert seen.env["KUBERNETES_SERVICE_PORT"] == "6443"
    yours = Replacement(process=("x",), mounts={"/etc/a": str(kubeconfig)})
    with pytest.raises(RequirementError, match="mounts: no user and mount namespace can be made here: forbidden here"):
        view.own_mounts(yours, tmp_path, str)


def test_an_api_in_plain_http_has_no_service_account(tmp_path):
    seen = view.program_view({"api": "http://127.0.0.1:1", "nodes": {}}, None, tmp_path / "account")
    assert (dict(seen.env), seen.mounts) == ({}, ())
    assert not (tmp_path / "account").exists()
