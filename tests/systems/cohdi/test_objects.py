"""The objects that CoHDI's programs look for, and the lines that the operator's own objects make. Pure."""

import yaml
from msgspec.structs import replace

from mews.harness.scenario.replacement import filled
from mews.kube.api.objects import name_of
from mews.systems.cohdi.config import CohdiConfig
from mews.systems.cohdi.journal import request_news, resource_news
from mews.systems.cohdi.kinds import kinds
from mews.systems.cohdi.objects import device_name, objects, provider_id
from mews.systems.cohdi.programs import composable_dra_driver, composable_resource_operator, dynamic_device_scaler

CONFIG = CohdiConfig("/opt/cohdi", "A", "a-tenant", ("V100", "A100 80GB"), {"host-1": "a-machine"}, scan_s=7)


def by_kind(kind: str) -> list[dict]:
    return [each for each in objects(CONFIG) if each["kind"] == kind]


def test_a_model_is_called_by_a_dns_label_that_the_driver_takes():
    assert device_name("Tesla V100-PCIE-32GB") == "gpu-tesla-v100-pcie-32gb"
    assert device_name("_A/100_") == "gpu-a-100"
    assert len(device_name("x" * 80)) == 50
    assert device_name("y" * 45 + " " + "x" * 9) == "gpu-" + "y" * 45


def test_the_config_map_names_each_model_once_with_what_the_driver_requires():
    (found,) = by_kind("ConfigMap")
    models = yaml.safe_load(found["data"]["device-info"])
    assert [each["index"] for each in models] == [1, 2]
    assert [each["cdi-model-name"] for each in models] == ["V100", "A100 80GB"]
    assert [each["k8s-device-name"] for each in models] == ["gpu-v100", "gpu-a100-80gb"]
    assert {each["driver-name"] for each in models} == {"gpu.nvidia.com"}
    assert models[1]["dra-attributes"]["productName"] == "A100 80GB"


def test_both_secrets_hold_the_account_of_the_fabric_manager_and_one_its_certificate():
    places = {"user:fm": "admin", "password:fm": "word", "ca-text": "PEM"}
    secrets = {name_of(each): filled(each, places)["stringData"] for each in by_kind("Secret")}
    assert set(secrets) == {"composable-dra-secret", "credentials"}
    for data in secrets.values():
        assert (data["username"], data["password"]) == ("admin", "word")
        assert data["client_id"] and data["client_secret"] and data["realm"]
    assert secrets["composable-dra-secret"]["certificate"] == "PEM"
    assert "certificate" not in secrets["credentials"]


def test_each_namespace_comes_before_what_lies_in_it():
    seen = set()
    for each in objects(CONFIG):
        namespace = each["metadata"].get("namespace")
        assert namespace is None or namespace in seen
        if each["kind"] == "Namespace":
            seen.add(name_of(each))
    assert len(seen) == 3


def test_the_driver_pods_bear_the_label_by_which_the_operator_finds_them():
    (found,) = by_kind("DaemonSet")
    labels = found["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/component"] == "nvidia-driver"
    assert found["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_a_provider_id_ends_in_the_machine_as_both_programs_read_it():
    assert provider_id("u-1").rpartition("/")[2] == provider_id("u-1").removeprefix("fsas-cdi://") == "u-1"


def test_the_kinds_are_those_of_the_operator_with_a_status_of_their_own():
    names = {name_of(each): each["spec"]["versions"][0] for each in kinds()}
    assert set(names) == {
        "composabilityrequests.cro.hpsys.ibm.ie.com",
        "composableresources.cro.hpsys.ibm.ie.com",
        "clusterpolicies.nvidia.com",
    }
    assert all("status" in version["subresources"] for version in names.values())


def test_the_programs_are_given_the_fabric_manager_of_the_chassis():
    driver, operator, scaler = (
        make(CONFIG) for make in (composable_dra_driver, composable_resource_operator, dynamic_device_scaler)
    )
    assert driver.argv[:5] == ("/opt/cohdi/cdd", "--tenant-id", "a-tenant", "--cdi-endpoint", "{chassis:A:fm}")
    assert driver.argv[driver.argv.index("--scan-interval") + 1] == "7s"
    assert operator.argv[0] == "/opt/cohdi/cro-manager"
    assert operator.env["FTI_CDI_ENDPOINT"] == "{address:A:fm}"
    assert operator.env["SSL_CERT_FILE"] == "{ca}"
    assert scaler.argv[0] == "/opt/cohdi/dds-manager"
    assert (scaler.env["SCAN_INTERVAL"], scaler.env["DEVICE_NO_REMOVAL_DURATION"]) == ("7", "20")


def test_an_operator_for_cdim_is_given_host_and_port_of_that_face():
    config = replace(CONFIG, operator="cdim", provisional_gpu="GPU-1")
    operator = composable_resource_operator(config)
    assert operator.env["CDI_PROVIDER_TYPE"] == "NEC"
    assert operator.env["NEC_CDIM_IP"] == "{host:A:cdim}"
    assert {operator.env[f"{name}_PORT"] for name in ("LAYOUT_APPLY", "CONFIGURATION_MANAGER")} == {"{port:A:cdim}"}
    assert operator.env["NEC_PROVISIONAL_GPU_UUID"] == "GPU-1"
    assert not [name for name in operator.env if name.startswith("FTI")]
    assert composable_dra_driver(config).argv == composable_dra_driver(CONFIG).argv


def test_a_resource_makes_lines_for_its_state_its_device_and_its_error():
    def resource(**status):
        return {"metadata": {"name": "r"}, "spec": {"target_node": "host-1"}, "status": status}

    new = list(resource_news(None, resource(state="Attaching")))
    assert new == [("resource/r", "resource-state", {"state": "Attaching", "node": "host-1", "gpu": ""})]
    assert list(resource_news(resource(state="Online"), resource(state="Online"))) == []
    failed = list(resource_news(resource(state="Online"), resource(state="Online", error="busy")))
    assert failed == [("resource/r", "resource-error", {"error": "busy"})]
    gone = list(resource_news(resource(state="Deleting"), None))
    assert gone == [("resource/r", "resource-state", {"state": "", "node": "", "gpu": ""})]


def test_a_request_makes_lines_for_its_state_and_its_size():
    def request(size, **status):
        return {"metadata": {"name": "r"}, "spec": {"resource": {"size": size, "target_node": "n"}}, "status": status}

    changed = list(request_news(request(1, state="Running"), request(0, state="Running")))
    assert changed == [("request/r", "request-state", {"state": "Running", "size": 0, "node": "n"})]
    assert list(request_news(request(1, state="Running"), request(1, state="Running"))) == []
    assert [line[2]["state"] for line in request_news(request(1, state="Running"), None)] == [""]
