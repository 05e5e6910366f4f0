"""Bodies as they are read: YAML with repeated keys, protobuf of names that Go writes in its own way."""

import random

import pytest

from mews.kube.api.errors import ApiError
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.objects.update import replace
from mews.kube.emulated.core.wire import protobuf
from mews.kube.emulated.core.wire.negotiation import parse_yaml_strictly
from mews.kube.emulated.types.gotypes import release_mark, struct, table


def test_repeated_keys_of_a_yaml_text_are_told_with_their_lines():
    value, repeated = parse_yaml_strictly(b"\na: 1\nb:\n- x: 1\n  x: 2\na: 3\n7: y\n7: z\n")
    assert value == {"a": 3, "b": [{"x": 2}], 7: "z"}
    assert repeated == [
        'line 5: key "x" already set in map',
        'line 6: key "a" already set in map',
        "line 8: key 7 already set in map",
    ]
    assert parse_yaml_strictly(b"") == (None, [])


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def test_fields_of_a_protobuf_body_are_found_however_go_writes_their_names():
    validation = _field(1, b"object.spec.replicas < 5")
    variable = _field(1, b"limit") + _field(2, b"5")
    spec = _field(3, validation) + _field(7, variable)
    meta = _field(1, b"admissionregistration.k8s.io/v1") + _field(2, b"ValidatingAdmissionPolicy")
    body = protobuf.MAGIC + _field(1, meta) + _field(2, _field(2, spec))
    decoded = protobuf.decode(body)["spec"]
    assert decoded["validations"] == [{"expression": "object.spec.replicas < 5"}]
    assert decoded["variables"] == [{"name": "limit", "expression": "5"}]


def test_protobuf_of_versions_that_are_off_by_default_is_read():
    """upstream dra.go 1575: its claims of v1beta2, and the options with which it deletes them."""
    meta = _field(1, b"resource.k8s.io/v1beta2")
    devices = _field(1, _field(1, _field(1, b"my-request") + _field(2, _field(1, b"my-class"))))
    body = protobuf.MAGIC + _field(1, meta + _field(2, b"ResourceClaim")) + _field(2, _field(2, devices))
    request = {"name": "my-request", "exactly": {"deviceClassName": "my-class"}}
    assert protobuf.decode(body)["spec"] == {"devices": {"requests": [request]}}
    options = protobuf.MAGIC + _field(1, meta + _field(2, b"DeleteOptions")) + _field(2, _field(4, b"Background"))
    assert protobuf.decode(options)["propagationPolicy"] == "Background"


def test_protobuf_of_a_later_release_is_read_with_what_that_release_has():
    """upstream dra.go 1.37: its DeviceTaintRule; and the older 1.34, which knows none of that version."""
    meta = _field(1, b"resource.k8s.io/v1") + _field(2, b"DeviceTaintRule")
    taint = _field(1, b"example.com/broken") + _field(3, b"NoExecute")
    spec = _field(1, _field(2, b"gpu.example.com")) + _field(2, taint)
    body = protobuf.MAGIC + _field(1, meta) + _field(2, _field(1, _field(1, b"rule")) + _field(2, spec))
    decoded = protobuf.decode(body, "1.37")
    assert (decoded["kind"], decoded["metadata"]["name"]) == ("DeviceTaintRule", "rule")
    assert decoded["spec"]["taint"] == {"key": "example.com/broken", "effect": "NoExecute"}
    with pytest.raises(ApiError, match=r"protobuf of resource\.k8s\.io/v1 DeviceTaintRule is not decoded here"):
        protobuf.decode(body)
    job = protobuf.MAGIC + _field(1, _field(1, b"batch/v1") + _field(2, b"Job"))
    scheduling = _field(2, bytes([17 << 3 & 0x7F | 0x82, 17 << 3 >> 7, 0]))
    assert "scheduling" in protobuf.decode(job + _field(2, scheduling), "1.37")["spec"]
    assert "scheduling" not in protobuf.decode(job + _field(2, scheduling))["spec"]


@pytest.mark.parametrize("release", ["1.34", "1.35", "1.36", "1.37"])
def test_every_field_that_goes_over_the_wire_has_a_type(release):
    numbers, mark = protobuf.field_numbers(release), release_mark(release)

    def names(ref: str) -> set[str]:
        words = numbers[ref].split()[1::2]
        embedded = [names(word[1:]) for word in words if word.startswith("~")]
        return {word.lower() for word in words if not word.startswith("~")}.union(*embedded)

    for ref in numbers:
        group, _, name = ref.partition("/")
        if name in table(group + mark):  # else a message of Go's that is embedded in a struct
            fields = {field.lower() for field in struct(f"{group}{mark}/{name}").fields} - {"apiversion", "kind"}
            assert fields <= names(ref), ref


def test_a_deployments_status_is_written_with_its_annotations_and_without_its_labels():
    store = fresh_store(lambda: 0.0, random.Random(1))
    kind = store.kinds.find("apps", "v1", "deployments")
    assert kind is not None
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = create(store, kind, "default", {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": spec})
    metadata = {**made["metadata"], "labels": {"x": "z"}, "annotations": {"revision": "1"}}
    found = replace(store, kind, "default", "a", {**made, "metadata": metadata}, subresource="status")
    assert (found["metadata"]["labels"], found["metadata"]["annotations"]) == ({"x": "y"}, {"revision": "1"})
