"""CDI specifications: what is read, what is resolved, what is refused."""

import json

import pytest

from mews.kube.deviceplugin.port import DeviceNode, Mount
from mews.kube.emulated.kubelet.oci.cdi import CdiError, annotated, parse_spec, qualified, resolve


def spec(kind="nvidia.com/gpu", devices=("0", "1"), env=("A=1",), **edits):
    made = [
        {"name": name, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{name}"}], "env": [f"D{name}=yes"]}}
        for name in devices
    ]
    whole = {"cdiVersion": "0.6.0", "kind": kind, "devices": made, "containerEdits": {"env": list(env), **edits}}
    return parse_spec(json.dumps(whole), "spec.json")


def test_a_device_brings_its_own_edits_and_once_those_of_its_specification():
    found = resolve(["nvidia.com/gpu=0", "nvidia.com/gpu=1", "nvidia.com/gpu=0"], [[spec(env=("A=1", "B=x=y"))]])
    assert found.env == {"A": "1", "B": "x=y", "D0": "yes", "D1": "yes"}
    assert found.devices == (DeviceNode("/dev/nvidia0", "/dev/nvidia0"), DeviceNode("/dev/nvidia1", "/dev/nvidia1"))


def test_yaml_is_read_with_mounts_and_hooks():
    text = """
cdiVersion: 0.5.0
kind: vendor.com/class
devices: [{name: all, containerEdits: {}}]
containerEdits:
  mounts: [{hostPath: /r/lib.so, containerPath: /usr/lib/lib.so, options: [ro, bind]}]
  hooks: [{hookName: createContainer, path: /bin/hook, args: [hook, update-ldcache, --folder, /usr/lib]}]
"""
    found = resolve(["vendor.com/class=all"], [[parse_spec(text, "s.yaml")]])
    assert found.mounts == (Mount("/usr/lib/lib.so", "/r/lib.so", True),)
    assert found.hooks[0].args == ("hook", "update-ldcache", "--folder", "/usr/lib")


def test_a_device_of_a_later_folder_hides_one_of_an_earlier():
    early, late = spec(env=("WHICH=etc",)), spec(devices=("0",), env=("WHICH=run",))
    assert resolve(["nvidia.com/gpu=0"], [[early], [late]]).env["WHICH"] == "run"
    assert resolve(["nvidia.com/gpu=1"], [[early], [late]]).env["WHICH"] == "etc"


def test_what_nobody_has_or_two_of_one_folder_have_cannot_be_resolved():
    with pytest.raises(CdiError, match=r"unresolvable CDI devices nvidia.com/gpu=7, a.b/c=d"):
        resolve(["nvidia.com/gpu=7", "nvidia.com/gpu=0", "a.b/c=d"], [[spec()]])
    with pytest.raises(CdiError, match=r"unresolvable CDI devices nvidia.com/gpu=0"):
        resolve(["nvidia.com/gpu=0"], [[spec(), spec(devices=("0",))]])


def test_annotations_name_devices_each_once_and_nothing_else_does():
    given = {"cdi.k8s.io/one": "a.b/c=1,a.b/c=2", "cdi.k8s.io/two": "a.b/c=1", "other": "a.b/c=9"}
    assert annotated(given) == ("a.b/c=1", "a.b/c=2")
    with pytest.raises(CdiError, match=r'invalid CDI device name "gpu0" in annotation cdi.k8s.io/x'):
        annotated({"cdi.k8s.io/x": "gpu0"})


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "gpu=0", "nvidia.com/gpu=", "=0", "a/b/c=0", "GPU-1"])
def test_only_vendor_class_and_name_are_a_qualified_name(name):
    assert qualified(name) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "gpu"}, "s.json: kind: 'gpu'"),
        ({"cdiVersion": 5}, "s.json: cdiVersion: 5"),
        ({"devices": {}}, "s.json: devices: {}: must be a list"),
        ({"devices": [{"name": "a b"}]}, r"devices\[0\].name: 'a b'"),
        ({"devices": [{"name": "a"}, {"name": "a"}]}, r"devices\[1\].name: 'a'"),
        ({"containerEdits": {"env": ["NOVALUE"]}}, "containerEdits.env: 'NOVALUE'"),
        ({"containerEdits": {"mounts": [{"hostPath": "x", "containerPath": "/y"}]}}, "mounts.hostPath: 'x'"),
        ({"containerEdits": []}, "containerEdits: .*must be a mapping"),
    ],
)
def test_a_bad_specification_is_refused_with_its_file_and_field(change, message):
    with pytest.raises(CdiError, match=message):
        parse_spec(json.dumps({"cdiVersion": "0.5.0", "kind": "a.b/c", "devices": [], **change}), "s.json")


def test_text_that_is_neither_json_nor_yaml_is_refused():
    with pytest.raises(CdiError, match=r"s.yaml: neither JSON nor YAML"):
        parse_spec("{", "s.yaml")
