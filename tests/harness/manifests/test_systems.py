"""Systems that the harness has never heard of, in a real cluster: what they declare is what is deployed."""

from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from mews.harness.clusters.real.opening import stack_spec
from mews.harness.clusters.real.replacements import replacement_deployment
from mews.harness.clusters.real.systems import check_exclusive, component_names, default_namespaces, deployments
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.errors import RequirementError
from mews.harness.manifests.nodes import RECORDS_FILE
from mews.harness.manifests.replacement_objects import manifest_objects
from mews.harness.manifests.rights import cluster_wide
from mews.harness.manifests.stack import manifests
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.loader import load_scenario
from mews.kube.api.objects import name_of
from mews.kube.api.resources import Resource
from mews.kube.system.deployment import CONFIG, ON_NODE, RECORDS, ComponentDeployment, SystemDeployment, rule
from mews.kube.system.options import OptionsModel
from mews.kube.system.system import Component, System
from mews.systems import registry

OURS = "registry.example.com/mews:1"
NODES = {"host-1": "box-a", "host-2": "box-b", "host-3": "box-c"}
HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: one}\nhardware: demo\n"
TOYS = Resource("toys.example.com", "v1", "toys", "Toy")
ARGV = ("-m", "toy", "--config", CONFIG, "--records", RECORDS)


def nothing(ports, configuration):
    return None


TOY = System(
    name="toy",
    summary="plays",
    options=OptionsModel,
    configure=lambda options, facility: [node.name for node in facility.nodes],
    components=(
        Component(
            "scheduler",
            nothing,
            deployment=ComponentDeployment(
                ARGV,
                everywhere=(rule("toys.example.com", ["toys"], ["list"]),),
                metrics_port=9000,
                part_flags={"plugin": "--mind"},
            ),
        ),
        Component(
            "watcher",
            nothing,
            nodes=lambda configuration: configuration[:2],
            deployment=ComponentDeployment(ARGV, security=ON_NODE, kubelet_folders=True),
        ),
    ),
    document=lambda configuration: {"nodes": list(configuration)},
    kinds=lambda: ({"kind": "CustomResourceDefinition", "metadata": {"name": "toys.toys.example.com"}},),
    deployment=SystemDeployment("toy-config", "/etc/toy/toy.yaml", owner="scheduler", swept=lambda: (TOYS,)),
)


@pytest.fixture
def toy(monkeypatch):
    """The registry with one system more."""
    known, names = registry.system, registry.names
    monkeypatch.setattr(registry, "system", lambda name: TOY if name == "toy" else known(name))
    monkeypatch.setattr(registry, "names", lambda: (*names(), "toy"))


def spec_with(folder, stack):
    (folder / "one.yaml").write_text(f"{HEAD}stack: {stack}\n")
    scenario = load_scenario(folder / "one.yaml")
    document, _ = hardware_document(scenario)
    place = DeploymentTarget(None, None, "pool", OURS, NODES, prefix="pool-")
    replaced = replacement_deployment(scenario, NODES)
    return stack_spec(
        scenario, hardware_of(scenario), document, place, dialect="h3api", token="secret", replacements=replaced
    )


def named(objects, kind, name):
    return next(obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) == (kind, name))


def pod_of(objects, kind, name):
    return named(objects, kind, name)["spec"]["template"]["spec"]


def mounted(container):
    return {mount["mountPath"] for mount in container["volumeMounts"]}


def test_a_system_of_somebody_elses_is_deployed_by_what_it_declares(toy, tmp_path):
    objects = manifests(spec_with(tmp_path, "{kubecomp: null, toy: {}}"))
    (container,) = pod_of(objects, "Deployment", "scheduler")["containers"]
    assert container["command"][-4:] == ["--config", "/etc/toy/toy.yaml", "--records", "-"]
    assert container["ports"] == [{"name": "metrics", "containerPort": 9000}]
    assert "/etc/toy" in mounted(container)
    document = named(objects, "ConfigMap", "toy-config")["data"]["toy.yaml"]
    assert yaml.safe_load(document) == {"nodes": list(NODES.values())}
    assert named(objects, "ClusterRole", "pool-scheduler")["rules"] == [
        {"apiGroups": ["toys.example.com"], "resources": ["toys"], "verbs": ["list"]}
    ]
    assert not [obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) == ("Role", "scheduler")]
    assert named(objects, "CustomResourceDefinition", "toys.toys.example.com")


def test_of_a_component_on_each_node_the_first_that_uses_the_kubelet_has_the_agent_beside_it(toy, tmp_path):
    alone = manifests(spec_with(tmp_path, "{kubecomp: null, toy: {}}"))
    pod = pod_of(alone, "DaemonSet", "watcher")
    assert [container["name"] for container in pod["containers"]] == ["watcher", "agent", "host"]
    assert pod["containers"][0]["command"][-1] == "/run/mews/records.jsonl"
    assert pod["containers"][0]["securityContext"] == dict(ON_NODE)
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["box-a", "box-b"], "those that the system says"
    beside = manifests(spec_with(tmp_path, "{toy: {}}"))
    assert [each["name"] for each in pod_of(beside, "DaemonSet", "device-manager")["containers"]][1:] == [
        "agent",
        "host",
    ]
    (container,) = pod_of(beside, "DaemonSet", "watcher")["containers"]
    assert container["command"][-1] == "-", "its records are in its pod's log"
    assert "/var/lib/kubelet/device-plugins" in mounted(container)


def test_components_of_the_same_name_are_told_apart(toy, tmp_path):
    spec = spec_with(tmp_path, "{toy: {}}")
    objects = manifests(spec)
    assert "mews.systems.kubecomp" in pod_of(objects, "Deployment", "scheduler")["containers"][0]["command"]
    pod = pod_of(objects, "Deployment", "toy.scheduler")
    assert pod["containers"][0]["name"] == "toy-scheduler", "a container's name is a DNS label"
    assert pod["serviceAccountName"] == "toy.scheduler"
    assert named(objects, "ClusterRole", "pool-toy.scheduler")
    made = [(obj["kind"], obj["metadata"]["name"]) for obj in objects]
    assert len(made) == len(set(made))


def test_a_component_off_the_control_plane_tolerates_nothing_and_is_found_by_its_metrics_port(tmp_path):
    objects = manifests(spec_with(tmp_path, "{kubecomp: null, defaultScheduler: null, kod2: {}}"))
    pod = pod_of(objects, "Deployment", "operator")
    assert "tolerations" not in pod and "affinity" not in pod
    assert [port["name"] for container in pod["containers"] for port in container["ports"]] == ["metrics"]
    labels = named(objects, "Deployment", "operator")["spec"]["template"]["metadata"]["labels"]
    assert {"app.kubernetes.io/part-of": "mews", "app.kubernetes.io/component": "operator"}.items() <= labels.items()
    beside = pod_of(manifests(spec_with(tmp_path, "{}")), "Deployment", "scheduler")
    assert beside["tolerations"] == [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]


def test_the_operator_can_be_replaced_by_a_process_with_its_account_and_its_configuration(tmp_path):
    (tmp_path / "mine.py").write_text("print(1)\n")
    stack = "{kubecomp: null, kod2: {}, replace: {kod2: {operator: {process: ['{python}', mine.py, '{config}']}}}}"
    objects = manifests(spec_with(tmp_path, stack))
    pod = pod_of(objects, "Deployment", "operator")
    (container,) = pod["containers"]
    assert container["command"][-3:] == ["python3", "mine.py", "/etc/kod2/kod2.yaml"]
    assert "/etc/kod2" in mounted(container)
    assert {"name": "config", "configMap": {"name": "kod2-config"}} in pod["volumes"]
    assert pod["serviceAccountName"] == "operator"
    assert named(objects, "ClusterRole", "pool-operator")
    assert named(objects, "CustomResourceDefinition", "tfjobs.kubeflow.org"), "its kind is there all the same"


@pytest.mark.parametrize("key", ["{kod2: {operator: %s}}", "{operator: %s}"])
def test_the_operator_can_be_replaced_by_an_image_or_a_manifest(tmp_path, key):
    image = key % "{image: 'mine:1', args: ['{config}']}"
    objects = manifests(spec_with(tmp_path, f"{{kod2: {{}}, replace: {image}}}"))
    (container,) = pod_of(objects, "Deployment", "operator")["containers"]
    assert (container["image"], container["args"]) == ("mine:1", ["/etc/kod2/kod2.yaml"])
    template = {"spec": {"containers": [{"name": "a", "image": "b", "args": ["{config}", "{config:kubecomp}"]}]}}
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m", "namespace": "kubecomp"}}
    (tmp_path / "m.yaml").write_text(yaml.safe_dump({**document, "spec": {"template": template}}))
    spec = spec_with(tmp_path, f"{{kod2: {{}}, replace: {key % '{manifest: m.yaml}'}}}")
    assert not [obj for obj in manifests(spec) if obj["kind"] == "Deployment" and obj["metadata"]["name"] == "operator"]
    (deployment,) = manifest_objects(spec)["operator"]
    pod = deployment["spec"]["template"]["spec"]
    assert deployment["metadata"]["namespace"] == "pool"
    assert pod["serviceAccountName"] == "operator"
    assert pod["containers"][0]["args"] == ["/etc/kod2/kod2.yaml", "/etc/kubecomp/config.yaml"]
    assert mounted(pod["containers"][0]) == {"/etc/kod2", "/etc/kubecomp"}


def test_a_node_with_runtime_hooks_shares_their_folder_with_agent_and_component(tmp_path):
    objects = manifests(spec_with(tmp_path, "{kubecomp: null, koordinator: {webhook: true}}"))
    pod = pod_of(objects, "DaemonSet", "koordlet")
    koordlet, agent = pod["containers"][:2]
    assert "/run/koordlet" in mounted(koordlet) & mounted(agent)
    assert "/run/koordlet/proxy.jsonl" in agent["command"]
    webhook = pod_of(objects, "Deployment", "koord-webhook")["containers"][0]["command"]
    assert webhook[webhook.index("--authority") + 1] == "/etc/mews-service/ca.crt"
    (secret,) = [obj for obj in objects if obj["kind"] == "Secret" and obj["metadata"]["name"] == "mews-services-tls"]
    assert set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt"}


def test_a_driver_of_resource_claims_has_the_kubelets_sockets_and_the_folder_of_cdi_files(tmp_path):
    objects = manifests(spec_with(tmp_path, "{kubecomp: null, dra: {nodes: [host-2]}}"))
    pod = pod_of(objects, "DaemonSet", "dra-gpu-driver")
    driver, *beside = pod["containers"]
    assert [container["name"] for container in beside] == ["agent", "host"]
    assert driver["command"][-5:] == ["mews.systems.dra", "--config", "/etc/dra/config.yaml", "--records", RECORDS_FILE]
    folders = {
        "/var/lib/kubelet/plugins/gpu.nvidia.com": "/var/lib/kubelet/plugins/gpu.nvidia.com",
        "/var/lib/kubelet/plugins_registry": "/var/lib/kubelet/plugins_registry",
        "/var/run/cdi": "/var/run/cdi",
    }
    paths = {each["name"]: each["hostPath"]["path"] for each in pod["volumes"] if "hostPath" in each}
    there = {each["mountPath"]: paths.get(each["name"]) for each in driver["volumeMounts"] if "readOnly" not in each}
    assert folders.items() <= there.items(), "at the same paths, for the kubelet is told them"
    assert driver["securityContext"] == dict(ON_NODE)
    document = yaml.safe_load(named(objects, "ConfigMap", "dra-config")["data"]["config.yaml"])
    assert document["nodes"] == ["box-b"] and document["nvml"] == "/var/lib/mews/host/this/libnvidia-ml.so.1"
    rules = named(objects, "ClusterRole", "pool-dra-gpu-driver")["rules"]
    assert {(name, verb) for each in rules for name in each["resources"] for verb in each["verbs"]} == {
        *(("resourceslices", verb) for verb in ("list", "watch", "create", "update", "delete")),
        *(("resourceclaims", "get"), ("nodes", "get")),
    }


def test_where_a_driver_is_brought_along_the_hosts_files_are_there_with_real_device_nodes(tmp_path):
    (tmp_path / "driver.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: d}, spec: {containers: []}}")
    brought = "{kubecomp: null, dra: {}, replace: {dra: {dra-gpu-driver: {manifest: driver.yaml}}}}"
    objects = manifests(spec_with(tmp_path, brought))
    assert [name_of(each) for each in objects if each["kind"] == "DaemonSet"] == ["node-agent"]
    agent, host = pod_of(objects, "DaemonSet", "node-agent")["containers"]
    assert host["securityContext"] == {**ON_NODE, "capabilities": {"drop": ["ALL"], "add": ["MKNOD"]}}
    assert host["readinessProbe"]["tcpSocket"] == {"port": host["ports"][0]["containerPort"]}, "then they are there"
    assert agent["securityContext"] == dict(ON_NODE)
    ours = pod_of(manifests(spec_with(tmp_path, "{kubecomp: null, dra: {}}")), "DaemonSet", "dra-gpu-driver")
    assert [each["securityContext"] for each in ours["containers"]] == [dict(ON_NODE)] * 3, "ours needs none"


def test_a_driver_beside_another_systems_device_manager_leaves_it_the_agent(tmp_path):
    objects = manifests(spec_with(tmp_path, "{dra: {}}"))
    (driver,) = pod_of(objects, "DaemonSet", "dra-gpu-driver")["containers"]
    assert driver["command"][-1] == "-", "its records are in its pod's log"
    assert len(pod_of(objects, "DaemonSet", "device-manager")["containers"]) == 3


def test_a_program_gets_the_configuration_of_another_system_that_it_names(tmp_path):
    stack = "{kod2: {}, replace: {scheduler: {process: [any, '{config}', '{config:kod2}']}}}"
    objects = manifests(spec_with(tmp_path, stack))
    pod = pod_of(objects, "Deployment", "scheduler")
    assert pod["containers"][0]["command"][-2:] == ["/etc/kubecomp/config.yaml", "/etc/kod2/kod2.yaml"]
    assert {"/etc/kubecomp", "/etc/kod2"} <= mounted(pod["containers"][0])
    assert {"name": "config-kod2", "configMap": {"name": "kod2-config"}} in pod["volumes"]


def test_a_plugin_is_told_to_a_component_as_the_component_declares(toy, tmp_path, monkeypatch):
    with_part = replace(TOY.components[0], parts={"plugin": "the scheduler's handle"})
    monkeypatch.setattr(__import__(__name__, fromlist=["TOY"]), "TOY", replace(TOY, components=(with_part,)))
    (tmp_path / "mine.py").write_text("def Mind(handle, node):\n    pass\n")
    stack = "{kubecomp: null, toy: {}, replace: {toy: {scheduler: {plugin: 'mine:Mind', options: {node: host-2}}}}}"
    (container,) = pod_of(manifests(spec_with(tmp_path, stack)), "Deployment", "scheduler")["containers"]
    assert container["command"][-4:] == ["--mind", "mine:Mind", "--mind-options", '{"node": "box-b"}']


@pytest.mark.parametrize("lost", [{"deployment": None}, {"components": (replace(TOY.components[0], deployment=None),)}])
def test_a_system_that_no_real_cluster_can_run_is_refused_in_one_line(toy, tmp_path, monkeypatch, lost):
    monkeypatch.setattr(__import__(__name__, fromlist=["TOY"]), "TOY", replace(TOY, **lost))
    with pytest.raises(RequirementError, match=r"^stack\.toy: it does not define how a real cluster runs it"):
        spec_with(tmp_path, "{toy: {}}")


def test_all_that_a_stack_makes_without_a_namespace_is_known_by_name(toy, tmp_path):
    (tmp_path / "extender.py").write_text("")
    configuration = "{urlPrefix: 'http://127.0.0.1:{port}'}"
    stacks = [
        "{kod2: {}, toy: {}, replace: {default-scheduler: {image: 'mine:1'}}}",
        f"{{extenders: [{{process: ['{{python}}', extender.py], config: {configuration}}}]}}",
    ]
    made = set()
    for stack in stacks:
        objects = manifests(spec_with(tmp_path, stack))
        made |= {(obj["kind"], obj["metadata"]["name"]) for obj in objects if obj["kind"].startswith("ClusterRole")}
    assert made <= set(cluster_wide(component_names(), "pool-"))


def test_a_system_that_needs_a_cluster_of_its_own_is_refused_in_somebodys_with_its_reason(toy, tmp_path):
    check_exclusive(spec_with(tmp_path, "{toy: {}}"))
    told = r"^stack\.kod2: the operator serves the TFJobs of a whole cluster, and this one is somebody's$"
    with pytest.raises(RequirementError, match=told):
        check_exclusive(spec_with(tmp_path, "{kod2: {}}"))


def test_a_cluster_that_another_scenario_used_is_known_by_all_registered_systems(toy):
    swept = {resource.plural for deployment in deployments() for resource in deployment.swept()}
    webhooks = {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
    assert swept == {"devices", "podgroups", "resourceslices", "tfjobs", "toys"} | webhooks
    assert default_namespaces() == ["kubecomp", "koordinator-system"]


def test_the_harness_names_no_system_where_it_deploys_them():
    harness = Path(__file__).parents[3] / "harness"
    for folder in ("manifests", "clusters/real", "clusters/kind", "clusters/kubeconfig"):
        for path in sorted((harness / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8").lower()
            assert not [name for name in registry.OURS if name in text], path


@pytest.mark.parametrize(("stack", "asks"), [("{}", False), ("{koordinator: {}}", True)])
def test_a_manager_may_annotate_nodes_only_where_another_system_has_their_devices(tmp_path, stack, asks):
    role = named(manifests(spec_with(tmp_path, stack)), "ClusterRole", "pool-device-manager")
    verbs = {verb for each in role["rules"] if "nodes" in each["resources"] for verb in each["verbs"]}
    assert ("patch" in verbs) is asks
