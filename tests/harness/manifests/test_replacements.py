"""The user's software as manifests: what is written for each way to bring it."""

import base64
from pathlib import Path

import pytest
import yaml

from mews.harness.clusters.real.opening import stack_spec
from mews.harness.clusters.real.replacements import replacement_deployment
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.errors import RequirementError
from mews.harness.manifests.parts import COMPONENT
from mews.harness.manifests.replacement_objects import manifest_objects
from mews.harness.manifests.replacements import is_deployed_last
from mews.harness.manifests.stack import manifests
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.loader import load_scenario
from mews.kube.system.deployment import ON_NODE, ROOTLESS

DOCS = Path(__file__).parents[3] / "docs" / "bring-your-own"
OURS = "registry.example.com/mews:1"
NODES = {"host-1": "box-a", "host-2": "box-b", "host-3": "box-c"}
HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: one}\nhardware: demo\n"


def spec_of(path, known=None):
    scenario = load_scenario(path)
    document, _ = hardware_document(scenario)
    replaced = replacement_deployment(scenario, NODES).with_images(known or {})
    place = DeploymentTarget(None, None, "pool", OURS, NODES, prefix="pool-")
    return stack_spec(
        scenario, hardware_of(scenario), document, place, dialect="h3api", token="secret", replacements=replaced
    )


def spec_with(folder, stack, known=None):
    (folder / "one.yaml").write_text(f"{HEAD}stack: {stack}\n")
    return spec_of(folder / "one.yaml", known)


def named(objects, kind, name):
    return next(obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) == (kind, name))


def names(objects, kind):
    return {obj["metadata"]["name"] for obj in objects if obj["kind"] == kind}


def pod_of(objects, kind, name):
    return named(objects, kind, name)["spec"]["template"]["spec"]


def values(container):
    return {entry["name"]: entry.get("value") for entry in container.get("env", ())}


def test_a_process_runs_in_our_image_under_the_keeper_with_its_texts_filled_in(tmp_path):
    stack = (
        "{replace: {scheduler: {process: ['{python}', -m, any, --config, '{config}', '{chassis:A}', '$HOME {x}'],"
        " env: {A: '{kubeconfig}'}}}}"
    )
    pod = pod_of(manifests(spec_with(tmp_path, stack)), "Deployment", "scheduler")
    (container,) = pod["containers"]
    assert container["image"] == OURS
    keeper = container["command"].index("python3", 1)
    assert container["command"][:keeper][-1].endswith("real/supervisor.py")
    assert container["command"][keeper:] == [
        "python3", "-m", "any", "--config", "/etc/kubecomp/config.yaml", "http://chassis.pool.svc:8000", "$$HOME {x}",
    ]  # fmt: skip
    assert values(container) == dict.fromkeys(("KUBECONFIG", "A"), "/etc/mews/access/kubeconfig")
    assert pod["serviceAccountName"] == "scheduler"
    assert container["securityContext"] == dict(ROOTLESS)
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {"/etc/kubecomp", "/etc/mews/access", "/run/mews", "/tmp"} <= mounted
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_the_kubeconfig_of_pods_uses_their_accounts_token_file():
    objects = manifests(spec_of(DOCS / "processes.yaml"))
    content = yaml.safe_load(named(objects, "ConfigMap", "mews-kubeconfig")["data"]["kubeconfig"])
    assert content["users"][0]["user"] == {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}
    assert content["clusters"][0]["cluster"]["server"] == "https://kubernetes.default.svc"


def test_files_are_mounted_as_the_working_folder_under_their_own_paths(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a b.bin").write_bytes(b"\xff\x00")
    (tmp_path / "mine.py").write_text("print(1)\n")
    stack = "{replace: {reconfig-manager: {process: ['{python}', mine.py], files: [lib/*]}}}"
    objects = manifests(spec_with(tmp_path, stack))
    pod = pod_of(objects, "Deployment", "reconfig-manager")
    volume = next(volume["configMap"] for volume in pod["volumes"] if volume["name"] == "files")
    stored = named(objects, "ConfigMap", volume["name"])
    found = {}
    for item in volume["items"]:
        key = item["key"]
        found[item["path"]] = (
            stored["data"][key].encode() if key in stored["data"] else base64.b64decode(stored["binaryData"][key])
        )
    assert found == {"mine.py": b"print(1)\n", "lib/a b.bin": b"\xff\x00"}
    assert pod["containers"][0]["workingDir"] == "/scenario"


def test_a_pod_is_made_anew_when_a_file_or_an_image_has_changed(tmp_path):
    def mark(known=None, stack="{replace: {scheduler: {process: ['{python}', mine.py]}}}"):
        objects = manifests(spec_with(tmp_path, stack, known))
        return named(objects, "Deployment", "scheduler")["spec"]["template"]["metadata"]["annotations"]

    (tmp_path / "mine.py").write_text("1")
    first, again = mark(), mark()
    (tmp_path / "mine.py").write_text("2")
    assert first == again != mark()
    image = "{replace: {scheduler: {image: mine:1}}}"
    assert mark({"mine:1": "sha256:1"}, image) == mark({"mine:1": "sha256:1"}, image) != mark({"mine:1": "x"}, image)


def test_an_image_runs_as_it_is_with_its_arguments_and_is_deployed_last(tmp_path):
    spec = spec_with(
        tmp_path, "{replace: {scheduler: {image: 'mine:1', args: ['--config={config}']}}}", {"mine:1": "i"}
    )
    objects = manifests(spec)
    (container,) = pod_of(objects, "Deployment", "scheduler")["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("mine:1", "IfNotPresent")
    assert container["args"] == ["--config=/etc/kubecomp/config.yaml"]
    assert "command" not in container
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "runAsUser" not in container["securityContext"]
    assert [obj["kind"] for obj in objects if is_deployed_last(spec, obj)] == ["Deployment"]


def test_an_image_that_docker_does_not_know_is_pulled_as_kubernetes_pulls(tmp_path):
    objects = manifests(spec_with(tmp_path, "{replace: {scheduler: {image: 'mine:1'}}}"))
    assert "imagePullPolicy" not in pod_of(objects, "Deployment", "scheduler")["containers"][0]


def test_an_image_that_stands_for_a_process_runs_it_in_ours():
    spec = spec_of(DOCS / "image-and-manifest.yaml")
    (container,) = pod_of(manifests(spec), "Deployment", "scheduler")["containers"]
    assert container["image"] == OURS
    assert container["command"][3:7] == ["python3", "-m", "mews.systems.kubecomp", "scheduler"]
    assert not [obj for obj in manifests(spec) if is_deployed_last(spec, obj)]


def test_a_device_manager_runs_on_each_node_with_that_nodes_words():
    objects = manifests(spec_of(DOCS / "processes.yaml"))
    assert names(objects, "DaemonSet") == {"node-agent", *(f"device-manager-{node}" for node in NODES.values())}
    ports = set()
    for node in NODES.values():
        own = named(objects, "DaemonSet", f"device-manager-{node}")
        pod = own["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        *_, chassis, port, folder = container["command"]
        ports.add(port)
        assert (chassis, folder) == ("http://chassis.pool.svc:8000", "/var/lib/kubelet/device-plugins")
        assert container["securityContext"] == dict(ON_NODE)
        assert own["spec"]["selector"]["matchLabels"].items() <= own["spec"]["template"]["metadata"]["labels"].items()
        terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert terms[0]["matchExpressions"][0]["values"] == [node]
    assert len(ports) == 3
    agent = pod_of(objects, "DaemonSet", "node-agent")
    assert [container["name"] for container in agent["containers"]] == ["agent", "host"]
    assert agent["automountServiceAccountToken"] is False


def test_what_is_replaced_keeps_its_account_and_rights_and_nobody_gets_more():
    def granted(objects):
        return [obj for obj in objects if obj["kind"] in ("ServiceAccount", "ClusterRole", "Role", "RoleBinding")]

    plain = granted(manifests(spec_of(DOCS / "plugin.yaml")))
    assert granted(manifests(spec_of(DOCS / "processes.yaml"))) == plain
    assert granted(manifests(spec_of(DOCS / "image-and-manifest.yaml"))) == plain


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("plugin", ["--plugin", "yours:Favourite", "--plugin-options", '{"node": "box-b"}']),
        ("policy", ["--score", "yours:most_left"]),
    ],
)
def test_a_plugin_and_a_policy_are_options_of_our_scheduler_whose_host_names_become_nodes(name, words):
    objects = manifests(spec_of(DOCS / f"{name}.yaml"))
    (container,) = pod_of(objects, "Deployment", "scheduler")["containers"]
    assert container["command"][-len(words) :] == words
    assert "mews.systems.kubecomp" in container["command"]
    assert "yours.py" in next(iter(named(objects, "ConfigMap", "mews-files-scheduler")["data"]))
    assert "KUBECONFIG" not in values(container), "it finds the API as ours does"


def test_a_manifest_gets_the_files_that_it_names_its_components_account_and_the_real_namespace():
    spec = spec_of(DOCS / "image-and-manifest.yaml")
    assert "reconfig-manager" not in names(manifests(spec), "Deployment")
    (pod,) = manifest_objects(spec)["reconfig-manager"]
    assert pod["metadata"]["namespace"] == "pool"
    assert pod["spec"]["serviceAccountName"] == "reconfig-manager"
    (container,) = pod["spec"]["containers"]
    assert container["args"][2:] == ["/etc/kubecomp/config.yaml", "--kubeconfig", "/etc/mews/access/kubeconfig"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted == {"mews-config": "/etc/kubecomp", "mews-kubeconfig": "/etc/mews/access"}
    assert {volume["name"] for volume in pod["spec"]["volumes"]} == set(mounted)


def test_a_manifests_own_account_templates_and_namespace_are_respected(tmp_path):
    template = {
        "spec": {"serviceAccountName": "mine", "containers": [{"name": "a", "image": "b", "args": ["{config}"]}]}
    }
    documents = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubecomp"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m", "namespace": "kubecomp"},
         "spec": {"template": template}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}},
    ]  # fmt: skip
    (tmp_path / "m.yaml").write_text(yaml.safe_dump_all(documents))
    deployment, pod = manifest_objects(spec_with(tmp_path, "{replace: {scheduler: {manifest: m.yaml}}}"))["scheduler"]
    inner = deployment["spec"]["template"]["spec"]
    assert (inner["serviceAccountName"], len(inner["volumes"])) == ("mine", 1)
    assert pod == documents[2], "nothing of ours is in another namespace"


def test_a_pod_elsewhere_that_needs_our_files_is_refused_in_one_line(tmp_path):
    (tmp_path / "m.yaml").write_text(
        "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, args: ['{config}']}]}}"
    )
    with pytest.raises(
        RequirementError, match=r"^stack.replace.scheduler.manifest: Pod p: {config} .* not of default$"
    ):
        manifest_objects(spec_with(tmp_path, "{replace: {scheduler: {manifest: m.yaml}}}"))


def test_what_takes_kube_schedulers_place_has_its_roles(tmp_path):
    objects = manifests(spec_with(tmp_path, "{replace: {default-scheduler: {image: 'mine:1'}}}"))
    assert pod_of(objects, "Deployment", "default-scheduler")["serviceAccountName"] == "default-scheduler"
    roles = {
        obj["roleRef"]["name"]
        for obj in objects
        if obj["kind"] == "ClusterRoleBinding" and obj["subjects"][0]["name"] == "default-scheduler"
    }
    assert roles == {"system:kube-scheduler", "system:volume-scheduler"}


def test_an_extender_is_beside_the_scheduler_on_its_loopback():
    spec = spec_of(DOCS / "extender.yaml")
    pod = pod_of(manifests(spec), "Deployment", "extender-1")
    (container,) = pod["containers"]
    port = container["readinessProbe"]["tcpSocket"]["port"]
    assert container["command"][-2:] == ["extender.py", str(port)]
    assert pod["hostNetwork"]
    assert pod["nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}
    (setting,) = replacement_deployment(load_scenario(DOCS / "extender.yaml"), NODES).settings
    assert setting["urlPrefix"] == f"http://127.0.0.1:{port}"


def test_images_that_nothing_stands_for_are_known_wherever_they_are_named(tmp_path):
    (tmp_path / "m.yaml").write_text(
        "{kind: Job, metadata: {name: p}, spec: {template: {spec: {containers: [{image: 'theirs:2'}]}}}}"
    )
    (tmp_path / "one.yaml").write_text(
        f"{HEAD}stack: {{replace: {{scheduler: {{image: 'mine:1'}}, reconfig-manager: {{manifest: m.yaml}},"
        " device-manager: {image: mews/kubecomp}}}\n"
    )
    assert replacement_deployment(load_scenario(tmp_path / "one.yaml"), NODES).images == ["mine:1", "theirs:2"]


def test_a_plugin_for_the_real_kube_scheduler_is_refused(tmp_path):
    with pytest.raises(RequirementError, match="kube-scheduler loads none"):
        spec_with(tmp_path, "{replace: {default-scheduler: {plugin: 'json:loads'}}}")


def test_every_object_bears_its_component():
    for path in sorted(DOCS.glob("*.yaml")):
        if "kind: Scenario" in path.read_text():
            assert all(obj["metadata"]["labels"][COMPONENT] for obj in manifests(spec_of(path))), path
