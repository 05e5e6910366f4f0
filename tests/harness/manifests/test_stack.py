"""The manifests: what they grant, and that they say what the components need."""

import base64
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from mews.harness.cli import exit_code
from mews.harness.clusters.programs import finding
from mews.harness.clusters.real.opening import stack_spec
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.commands.manifests import files_of, node_map
from mews.harness.errors import BadInputError
from mews.harness.manifests.stack import as_yaml, manifests
from mews.harness.package import sources
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.loader import parse_scenario
from mews.systems.kod2.config import load_config as load_operator_config
from mews.systems.kubecomp.config_file import load_config
from tests.harness.real_api import real_api

SCENARIO = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: x}\nhardware: demo\n"
BROUGHT = Path(__file__).parents[3] / "docs" / "bring-your-own"
NODES = {"host-1": "worker-a", "host-2": "worker-b", "host-3": "worker-c"}


def stack(text=SCENARIO, nodes=NODES, dialect="h3api"):
    scenario = parse_scenario(text, Path("x"), {})
    place = DeploymentTarget(None, None, "pool", "registry.example.com/mews:1", nodes, prefix="kubecomp-")
    document, _ = hardware_document(scenario)
    spec = stack_spec(scenario, hardware_of(scenario), document, place, dialect=dialect, token="secret")
    return manifests(spec)


def named(objects, kind, name):
    return next(obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) == (kind, name))


def test_the_configuration_is_one_that_kubecomp_reads(tmp_path):
    text = named(stack(), "ConfigMap", "kubecomp-config")["data"]["config.yaml"]
    (tmp_path / "config.yaml").write_text(text)
    config = load_config(tmp_path / "config.yaml")
    assert [node.name for node in config.nodes] == ["worker-a", "worker-b", "worker-c"]
    assert config.chassis[0].endpoint == "http://chassis.pool.svc:8000"
    assert config.namespace == "pool"


def mounted(pod, path):
    """The volume that the first container of a pod has there."""
    [mount] = [each for each in pod["containers"][0]["volumeMounts"] if each["mountPath"] == path]
    return next(each for each in pod["volumes"] if each["name"] == mount["name"])


def test_components_that_speak_redfish_reach_the_chassis_under_tls_and_trust_its_certificate(tmp_path):
    objects = stack(dialect="redfish")
    (tmp_path / "config.yaml").write_text(named(objects, "ConfigMap", "kubecomp-config")["data"]["config.yaml"])
    [chassis] = load_config(tmp_path / "config.yaml").chassis
    assert chassis.endpoint == "https://chassis.pool.svc:8001"
    assert 8001 in [port["port"] for port in named(objects, "Service", "chassis")["spec"]["ports"]]
    for name in ("reconfig-manager", "device-manager"):
        [workload] = [
            each for each in objects if each["metadata"]["name"] == name and "template" in each.get("spec", {})
        ]
        folder, _, file = chassis.ca_file.rpartition("/")
        volume = mounted(workload["spec"]["template"]["spec"], folder)
        trusted = named(objects, "ConfigMap", volume["configMap"]["name"])["data"][file]
    pod = named(objects, "Deployment", "chassis")["spec"]["template"]["spec"]
    command = pod["containers"][0]["command"]
    folder, _, file = command[command.index("--certificate") + 1].rpartition("/")
    secret = named(objects, "Secret", mounted(pod, folder)["secret"]["secretName"])["data"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(secret[file]))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "chassis.pool.svc" in names.get_values_for_type(x509.DNSName)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(trusted.encode()))


def test_components_that_speak_the_plain_dialects_are_given_nothing_to_trust():
    text = as_yaml([each for each in stack() if each["kind"] in ("Deployment", "DaemonSet")])
    assert "mews-chassis-ca" not in text


def test_the_chassis_answer_to_the_name_by_which_the_components_call_them():
    pod = named(stack(), "Deployment", "chassis")["spec"]["template"]["spec"]
    command = pod["containers"][0]["command"]
    assert command[command.index("--allow-host") + 1] == "chassis.pool.svc"


def test_every_file_and_module_of_ours_that_a_command_names_is_there():
    """They are named in texts, which no tool that renames modules follows."""
    from mews.harness.manifests import parts

    there = {f"mews/{inside}" for inside, _ in sources()}
    programs = [*parts.kept(["-m", "mews.emulator.serve"]), *parts.kept_program(["x"])]
    named = [word for word in programs if "mews" in word]
    files = [word.removeprefix("/opt/mews/lib/") for word in named if word.endswith(".py")]
    modules = [word.replace(".", "/") + ".py" for word in named if word.startswith("mews.")]
    assert files
    assert modules
    assert {*files, *modules} <= there


def test_nobody_is_granted_everything():
    rules = [rule for obj in stack() if obj["kind"].endswith("Role") for rule in obj["rules"]]
    assert rules
    for rule in rules:
        assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
        assert "secrets" not in rule["resources"]
        if {"create", "patch", "delete"} & set(rule["verbs"]):
            assert "nodes" not in rule["resources"]


def test_only_what_touches_the_node_runs_as_root_and_nothing_gains_rights():
    pods = {
        obj["metadata"]["name"]: obj["spec"]["template"]["spec"] for obj in stack() if "template" in obj.get("spec", {})
    }
    assert set(pods) == {"chassis", "scheduler", "reconfig-manager", "device-manager"}
    for name, pod in pods.items():
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert not context["allowPrivilegeEscalation"]
            assert context["readOnlyRootFilesystem"]
            assert context.get("runAsNonRoot", False) is (name != "device-manager")
        assert not any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
    assert pods["chassis"]["automountServiceAccountToken"] is False


def test_a_part_that_the_scenario_leaves_out_is_left_out():
    objects = stack(SCENARIO + "stack: {kubecomp: {scheduler: null, reconfigManager: null}}\n")
    assert not [obj for obj in objects if obj["metadata"]["name"] in ("scheduler", "reconfig-manager")]
    assert named(objects, "DaemonSet", "device-manager")


def test_the_operator_comes_with_its_kind_its_settings_and_no_more_rights_than_it_uses(tmp_path):
    assert not [obj for obj in stack() if obj["metadata"]["name"] == "operator"]
    objects = stack(SCENARIO + "stack: {kubecomp: null, kod2: {cooldown_s: 7, mode: literal}}\n")
    assert named(objects, "CustomResourceDefinition", "tfjobs.kubeflow.org")
    assert any(name.endswith("-operator.yaml") for name in files_of(objects))
    (tmp_path / "kod2.yaml").write_text(named(objects, "ConfigMap", "kod2-config")["data"]["kod2.yaml"])
    config = load_operator_config(tmp_path / "kod2.yaml")
    assert (config.cooldown_s, config.mode, config.pool_namespace) == (7.0, "literal", "pool")
    (container,) = named(objects, "Deployment", "operator")["spec"]["template"]["spec"]["containers"]
    assert "mews.systems.kod2" in container["command"]
    assert container["securityContext"]["runAsNonRoot"]
    verbs = {
        (resource, verb)
        for rule in named(objects, "ClusterRole", "kubecomp-operator")["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in ("get", "list", "watch")
    }
    assert verbs == {
        ("tfjobs", "delete"), ("tfjobs/status", "update"), ("events", "create"), ("events", "patch"),
        ("pods", "create"), ("pods", "delete"), ("services", "create"), ("services", "delete"),
    }  # fmt: skip


def test_pods_are_made_anew_when_what_they_read_changes():
    def hashes(objects):
        return {
            obj["metadata"]["name"]: obj["spec"]["template"]["metadata"]["annotations"]
            for obj in objects
            if "template" in obj.get("spec", {})
        }

    one, same = hashes(stack()), hashes(stack())
    other = hashes(stack(SCENARIO + "stack: {kubecomp: {scheduler: {policy: best-fit}}}\n"))
    assert one == same
    assert {name for name in one if one[name] != other[name]} == {"scheduler", "reconfig-manager", "device-manager"}


def test_the_stream_and_the_files_hold_the_same():
    objects = stack()
    assert list(yaml.safe_load_all(as_yaml(objects))) == objects
    files = files_of(objects)
    assert sorted(files) == list(files), "a folder is applied in the order of its names"
    assert sum(len(list(yaml.safe_load_all(text))) for text in files.values()) == len(objects)


def test_files_are_their_owners_alone_as_one_holds_a_token(tmp_path, capsys):
    (tmp_path / "01-chassis.yaml").touch(mode=0o644)
    assert exit_code(["manifests", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    found = list(tmp_path.iterdir())
    assert any("kind: Secret" in path.read_text() for path in found)
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (["host-9=a"], "host-9=a: must be HOST=NODE"),
        (["host-1"], "must be HOST=NODE"),
        (["host-1=host-2"], "two hosts"),
    ],
)
def test_a_node_that_does_not_fit_is_told(given, wrong):
    with pytest.raises(BadInputError, match=wrong):
        node_map(["host-1", "host-2"], given)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory):
    """kubectl on a real API server, given manifests: `apply` and what it answers."""
    with real_api(tmp_path_factory.mktemp("kubectl")) as config:
        program = finding.find("kubectl")
        if program is None:
            pytest.skip("kubectl is neither in KUBEBUILDER_ASSETS nor on PATH")

        def run(*words, text=None, codes=(0,)):
            argv = [program, "--kubeconfig", str(config), *words]
            done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=120)
            assert done.returncode in codes, done.stderr
            return done.stdout.splitlines()

        yield run


def written(*options):
    """What `mews manifests` prints."""
    argv = [sys.executable, "-m", "mews.harness.cli", "manifests", *options]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.wall
@pytest.mark.parametrize(
    ("namespace", "options"),
    [
        ("plain", []),
        ("several", ["--hardware", "multi-chassis"]),
        ("spoken", ["--dialect", "redfish"]),
        ("elastic", ["--scenario", "elastic/12-with-the-pool"]),
        ("processes", ["--scenario", str(BROUGHT / "processes.yaml")]),
        ("brought", ["--scenario", str(BROUGHT / "image-and-manifest.yaml")]),
        ("plugin", ["--scenario", str(BROUGHT / "plugin.yaml")]),
        ("extender", ["--scenario", str(BROUGHT / "extender.yaml")]),
    ],
)
def test_a_real_api_server_accepts_them_and_finds_nothing_to_change_afterwards(namespace, options, kubectl):
    text = written("--namespace", namespace, *options)
    objects = text.count("\n---\n") + 1
    kubectl("apply", "-f", "-", text=text.partition("\n---\n")[0])  # the namespace
    dry = kubectl("apply", "--dry-run=server", "-f", "-", text=text)
    assert len(dry) == objects
    kubectl("apply", "-f", "-", text=text)
    again = kubectl("apply", "-f", "-", text=text)
    assert [line for line in again if not line.endswith("unchanged")] == []


@pytest.mark.wall
def test_the_stacks_of_two_namespaces_take_nothing_from_each_other(kubectl):
    one, other = (written("--namespace", name) for name in ("one", "other"))
    for _ in range(2):
        for text in (one, other):
            told = kubectl("apply", "-f", "-", text=text)
    assert {line.rpartition(" ")[2] for line in told} == {"unchanged"}
    for name in ("one", "other"):
        asked = ["auth", "can-i", "create", "pods", "--subresource", "binding"]
        deadline_s = time.monotonic() + 60
        while kubectl(*asked, "--as", f"system:serviceaccount:{name}:scheduler", codes=(0, 1)) != ["yes"]:
            assert time.monotonic() < deadline_s, "the API server hears of rights a moment after they are granted"
            time.sleep(0.2)
