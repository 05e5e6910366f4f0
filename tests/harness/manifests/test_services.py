"""What serves others in a real cluster: a Service, a certificate for its name, and an entry for kube-scheduler."""

import base64

import pytest
import yaml
from cryptography import x509

from mews.harness.manifests.kube_scheduler import at_address, extender_place
from mews.systems.gpushare import __main__ as gpushare_main
from mews.systems.gpushare.errors import GpuShareConfigError
from tests.harness.manifests.test_stack import named, stack

NODES = {"n1": "worker-a", "n2": "worker-b", "n3": "worker-c", "four": "worker-d"}
TEXT = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: x}
hardware: seed-001
stack: {kubecomp: null, gpushare: {unit: GiB, replicas: 2, nodes: [n1, n2]}}
"""


@pytest.fixture(scope="module")
def objects():
    return stack(TEXT, NODES)


def pod_of(objects, kind, name):
    return named(objects, kind, name)["spec"]["template"]


def test_both_replicas_are_behind_one_service(objects):
    service = named(objects, "Service", "gpushare-extender")["spec"]
    for name in ("gpushare-extender", "gpushare-extender-2"):
        template = pod_of(objects, "Deployment", name)
        assert service["selector"].items() <= template["metadata"]["labels"].items()
        (container,) = template["spec"]["containers"]
        assert container["readinessProbe"]["tcpSocket"]["port"] == service["ports"][0]["targetPort"]
    others = [obj["spec"]["template"] for obj in objects if obj["kind"] in ("Deployment", "DaemonSet")]
    behind = [each for each in others if service["selector"].items() <= each["metadata"]["labels"].items()]
    assert len(behind) == 2


BESIDE = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: x}
hardware:
  metadata: {name: beside}
  hosts: [{name: whole}, {name: sharing, devices: [{id: "0", uuid: GPU-own-0, model: V100-16GB}]}]
  chassis: [{name: A, ports: {"1": whole}, devices: [{id: "000100", uuid: GPU-1, model: V100-16GB, port: "1"}]}]
stack: {gpushare: {nodes: [sharing]}}
"""


def nodes_of(template):
    affinity = template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return affinity["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]


def test_a_node_that_only_shares_beside_a_pool_has_an_agent_and_its_hosts_files_too():
    made = stack(BESIDE, {"whole": "worker-a", "sharing": "worker-b"})
    agents = {}
    for each in made:
        if each["kind"] == "DaemonSet":
            template = each["spec"]["template"]
            containers = {container["name"] for container in template["spec"]["containers"]}
            agents.update(
                dict.fromkeys(nodes_of(template) if {"agent", "host"} <= containers else (), each["metadata"]["name"])
            )
    assert agents == {"worker-a": "device-manager", "worker-b": "node-agent"}


def test_kube_scheduler_is_told_of_the_extender_and_whom_to_trust(objects):
    config = yaml.safe_load(named(objects, "ConfigMap", "mews-kube-scheduler")["data"]["kube-scheduler.yaml"])
    assert (config["kind"], config["leaderElection"]) == ("KubeSchedulerConfiguration", {"leaderElect": False})
    (entry,) = config["extenders"]
    tls = entry.pop("tlsConfig")
    assert entry == {
        "urlPrefix": "https://gpushare-extender.pool.svc:39999/gpushare-scheduler",
        "filterVerb": "filter", "bindVerb": "bind", "enableHTTPS": True, "nodeCacheCapable": True, "ignorable": False,
        "managedResources": [{"name": "aliyun.com/gpu-mem", "ignoredByScheduler": False}],
    }  # fmt: skip
    secret = named(objects, "Secret", "mews-services-tls")["data"]
    shown = x509.load_pem_x509_certificate(base64.b64decode(secret["tls.crt"]))
    shown.verify_directly_issued_by(x509.load_pem_x509_certificate(base64.b64decode(tls["caData"])))
    found = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert tls["serverName"] in found.get_values_for_type(x509.DNSName)


def test_a_scheduler_without_dns_asks_at_the_services_address():
    entry = extender_place("https://e.pool.svc:39999/x", "PEM", "e.pool.svc")
    assert at_address(entry, "10.96.0.7")["urlPrefix"] == "https://10.96.0.7:39999/x"
    assert at_address(entry, "fd00::7")["urlPrefix"] == "https://[fd00::7]:39999/x"
    assert at_address(entry, "10.96.0.7")["tlsConfig"] == {"caData": "UEVN", "serverName": "e.pool.svc"}


def test_its_configuration_is_one_that_gpushare_reads(objects, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(named(objects, "ConfigMap", "gpushare-config")["data"]["config.yaml"])
    config = gpushare_main.config_of(file)
    assert (config.unit, config.replicas, config.nodes) == ("GiB", 2, ("worker-a", "worker-b"))
    assert config.namespace == "kube-system"
    (container, *_) = pod_of(objects, "DaemonSet", "gpushare-device-plugin")["spec"]["containers"]
    assert any(config.nvml.startswith(mount["mountPath"]) for mount in container["volumeMounts"])
    assert [mount.container_path for mount in config.mounts] == [config.envs["LD_LIBRARY_PATH"]]


def test_a_configuration_that_cannot_be_is_one_line(tmp_path):
    file = tmp_path / "config.yaml"
    for text in ("units: GiB", "[]", "{", "mounts: [{path: x}]"):
        file.write_text(text)
        with pytest.raises(GpuShareConfigError, match=r"^[^\n]*config\.yaml: "):
            gpushare_main.config_of(file)


def test_half_a_certificate_is_refused(capsys, tmp_path):
    assert gpushare_main.main(["extender", "--certificate", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err == "--certificate and --key: must be given together\n"


def test_its_parts_may_do_what_they_need_and_reach_config_maps_in_one_namespace_only(objects):
    everywhere = {
        name: named(objects, "ClusterRole", f"kubecomp-{name}")["rules"]
        for name in ("gpushare-extender", "gpushare-device-plugin")
    }
    for rules in everywhere.values():
        assert not any("configmaps" in each["resources"] or "secrets" in each["resources"] for each in rules)
    assert any(each["resources"] == ["pods/binding"] for each in everywhere["gpushare-extender"])
    assert not any("patch" in each["verbs"] for each in everywhere["gpushare-extender"] if "nodes" in each["resources"])
    role = named(objects, "Role", "kubecomp-gpushare-extender")
    assert role["metadata"]["namespace"] == "kube-system"
    assert [each["resources"] for each in role["rules"]] == [["configmaps"]]


def test_a_stack_that_serves_nobody_has_neither_services_nor_their_certificate():
    made = stack()
    assert [obj["metadata"]["name"] for obj in made if obj["kind"] == "Service"] == ["chassis"]
    assert "mews-services-tls" not in {obj["metadata"]["name"] for obj in made}
    assert "mews-kube-scheduler" not in {obj["metadata"]["name"] for obj in made}
