"""Bodies as they are read: YAML with repeated keys, protobuf of names that Go writes in its own way."""

import base64
import json
import random
from pathlib import Path

from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.objects.creation import create
from mews.kube.emulated.apiserver.objects.update import replace
from mews.kube.emulated.apiserver.store.request import WriteRequest
from mews.kube.emulated.apiserver.store.users import administrator
from mews.kube.emulated.apiserver.types.gotypes import struct, table
from mews.kube.emulated.apiserver.wire import protobuf
from mews.kube.emulated.apiserver.wire.negotiation import parse_yaml_strictly


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


def test_every_field_that_goes_over_the_wire_has_a_type():
    file = Path(protobuf.__file__).with_name("wire_numbers.json")
    for ref, words in json.loads(file.read_text(encoding="utf-8")).items():
        group, _, name = ref.partition("/")
        if name not in table(group):  # a message of Go's that is embedded in a struct
            continue
        known = {field.lower() for field in struct(ref).fields}
        names = {word.lower() for word in words.split()[1::2] if not word.startswith("~")}
        assert names <= known, ref


def test_a_certificate_request_names_its_author_and_a_decision_its_time():
    store = fresh_store(lambda: 0.0, random.Random(1))
    kind = store.kinds.find("certificates.k8s.io", "v1", "certificatesigningrequests")
    assert kind is not None
    pem = base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----\nYQ==\n-----END CERTIFICATE REQUEST-----\n").decode()
    spec = {"request": pem, "signerName": "x.io/y", "usages": ["client auth"], "username": "somebody", "extra": {}}
    made = create(store, kind, "", {"metadata": {"name": "a"}, "spec": spec}, WriteRequest(administrator("jo")))
    assert made["spec"]["username"] == "jo"
    assert made["spec"]["groups"] == ["system:masters", "system:authenticated"]
    approved = {"type": "Approved", "status": "True", "reason": "r", "lastTransitionTime": None}
    body = {**made, "spec": {**spec, "username": "eve"}, "status": {"conditions": [approved]}}
    decided = replace(store, kind, "", "a", body, subresource="approval")
    assert decided["spec"] == made["spec"]
    [condition] = decided["status"]["conditions"]
    assert condition["lastTransitionTime"] == condition["lastUpdateTime"] == store.timestamp()


def test_every_field_of_a_type_goes_over_the_wire():
    file = Path(protobuf.__file__).with_name("wire_numbers.json")
    numbers = json.loads(file.read_text(encoding="utf-8"))

    def names(ref: str) -> set[str]:
        words = numbers[ref].split()[1::2]
        embedded = [names(word[1:]) for word in words if word.startswith("~")]
        return {word.lower() for word in words if not word.startswith("~")}.union(*embedded)

    for ref in numbers:
        group, _, name = ref.partition("/")
        if name in table(group):
            fields = {field.lower() for field in struct(ref).fields} - {"apiversion", "kind"}
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
