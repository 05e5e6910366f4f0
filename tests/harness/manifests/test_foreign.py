"""Programs of others as pods of a real cluster, and the objects that they look for: CoHDI's."""

import pytest

from mews.harness.clusters.kind.needs import features_of, program_files
from mews.harness.clusters.real.opening import stack_spec
from mews.harness.clusters.real.systems import check_exclusive
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.commands.manifests import ManifestsOptions, stack_objects
from mews.harness.errors import RequirementError
from mews.harness.manifests.foreign import first_objects
from mews.harness.manifests.nodes import host
from mews.harness.manifests.stack import manifests
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.loader import load_scenario
from mews.kube.api.objects import name_of
from mews.systems.cohdi.config import PROGRAMS

NODES = {f"host-{number}": f"host-{number}" for number in (1, 2, 3)}
TEXT = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: one}
hardware: fabric
stack: {kubecomp: null, dialect: fm, cohdi: {programs: /opt/cohdi%s}}
"""


@pytest.fixture
def scenario(tmp_path):
    return read(tmp_path)


def read(folder, more=""):
    (folder / "one.yaml").write_text(TEXT % more)
    return load_scenario(folder / "one.yaml")


def spec_of(scenario, identities=None):
    document, _ = hardware_document(scenario)
    place = DeploymentTarget(None, None, "pool", "mews:1", NODES, prefix="pool-")
    return stack_spec(
        scenario,
        hardware_of(scenario),
        document,
        place,
        dialect="fm",
        token="word",
        identities=identities or {},
    )


def pod_of(objects, kind, name):
    found = next(obj for obj in objects if (obj["kind"], name_of(obj)) == (kind, name))
    return found["spec"]["template"]["spec"]


def test_each_program_runs_on_the_control_plane_from_its_folder_and_finds_the_chassis(scenario):
    objects = manifests(spec_of(scenario))
    for name in PROGRAMS.values():
        pod = pod_of(objects, "Deployment", name)
        assert pod["nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}
        assert {"name": "programs", "mountPath": "/opt/mews/programs", "readOnly": True} in pod["containers"][0][
            "volumeMounts"
        ]
    driver = pod_of(objects, "Deployment", "composable-dra-driver")["containers"][0]
    assert driver["command"][3] == "/opt/mews/programs/cdd"
    assert "https://chassis.pool.svc:8001" in driver["command"]
    operator = pod_of(objects, "Deployment", "composable-resource-operator")["containers"][0]
    env = {each["name"]: each.get("value") for each in operator["env"]}
    assert (env["FTI_CDI_ENDPOINT"], env["SSL_CERT_FILE"]) == ("chassis.pool.svc:8001", "/etc/mews-ca/ca.crt")
    assert "/etc/mews/access/kubeconfig" in operator["command"]


def test_cdim_is_spoken_without_tls(tmp_path):
    found = read(tmp_path, ", operator: cdim, provisionalGpu: GPU-9b342b50-cd03-5f52-f5e9-8e307c1554d2")
    operator = pod_of(manifests(spec_of(found)), "Deployment", "composable-resource-operator")["containers"][0]
    env = {each["name"]: each.get("value") for each in operator["env"]}
    assert (env["NEC_CDIM_IP"], env["LAYOUT_APPLY_PORT"]) == ("chassis.pool.svc", "8000")


def test_a_pod_is_made_anew_with_another_build_of_its_program(scenario):
    def reads(identities):
        objects = manifests(spec_of(scenario, identities))
        found = next(obj for obj in objects if name_of(obj) == "composable-dra-driver" and obj["kind"] == "Deployment")
        return found["spec"]["template"]["metadata"]["annotations"]["mews.dev/reads"]

    assert reads({"cdd": "one"}) == reads({"cdd": "one"}) != reads({"cdd": "two"})


def test_the_gpu_driver_is_ours_though_the_programs_are_not(scenario):
    spec = spec_of(scenario)
    assert not spec.foreign_claims
    assert spec.node_component() == "gpu-dra-driver"
    assert "MKNOD" not in str(host(spec)["securityContext"])
    command = pod_of(manifests(spec), "DaemonSet", "gpu-dra-driver")["containers"][0]["command"]
    assert command[5:] == [
        "mews.systems.dra",
        "--config",
        "/etc/cohdi/config.yaml",
        "--records",
        "/run/mews/records.jsonl",
    ]


def test_what_the_programs_look_for_has_the_account_of_the_chassis_and_what_to_trust(scenario):
    spec = spec_of(scenario)
    secrets = {name_of(obj): obj["stringData"] for obj in first_objects(spec) if obj["kind"] == "Secret"}
    assert (secrets["credentials"]["username"], secrets["credentials"]["password"]) == ("admin", "word")
    assert secrets["composable-dra-secret"]["certificate"] == spec.certificate.trusted
    pod = pod_of(first_objects(spec), "DaemonSet", "nvidia-driver-daemonset")
    assert pod["volumes"][0]["hostPath"]["path"] == "/var/lib/mews/host"
    assert pod["containers"][0]["env"] == [{"name": "MEWS_DRIVER_ROOT", "value": "/var/lib/mews/host/this/root"}]


def test_kind_is_told_gates_versions_provider_ids_and_files(scenario, tmp_path):
    hardware = hardware_of(scenario)
    features = features_of(scenario, hardware)
    assert features.gates == ("DRADeviceBindingConditions", "DRADeviceTaints", "DRAResourceClaimDeviceStatus")
    assert features.served == ("resource.k8s.io/v1alpha3",)
    assert set(features.provider_ids) == set(NODES)
    assert all(each.startswith("fsas-cdi://") for each in features.provider_ids.values())
    assert {name: str(file) for name, file in program_files(scenario, hardware).items()} == {
        name: f"/opt/cohdi/{name}" for name in PROGRAMS
    }
    (tmp_path / "plain.yaml").write_text(TEXT.replace("cohdi: {programs: /opt/cohdi%s}", "dra: {}"))
    plain = load_scenario(tmp_path / "plain.yaml")
    assert (str(features_of(plain, hardware)), program_files(plain, hardware)) == ("the features of every cluster", {})


def test_neither_somebodys_cluster_nor_manifests_can_have_them(scenario):
    with pytest.raises(RequirementError, match=r"^stack\.cohdi: its programs act as administrators, [^\n]*kind$"):
        check_exclusive(spec_of(scenario))
    with pytest.raises(RequirementError, match=r"^stack\.cohdi: composable-dra-driver is a program that [^\n]*kind$"):
        stack_objects(ManifestsOptions(None, scenario.path, None, None, "mews:1", (), None))
