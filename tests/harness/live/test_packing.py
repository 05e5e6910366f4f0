"""What a session remembers of objects is small, and the same when it is looked at again."""

import json

import pytest

from mews.harness.live.packing import PackedObjects, identity_of


def an_object(name, **more):
    return {"metadata": {"name": name, "namespace": "default", "uid": "1", "resourceVersion": "2", **more}, "spec": {}}


def test_an_object_is_the_same_when_it_is_looked_at_again():
    kept = PackedObjects()
    mine = an_object("mine", labels={"a": "ü"})
    kept["mine"] = mine
    assert kept["mine"] == mine
    assert list(kept) == ["mine"]
    assert kept.pop("mine") == mine
    assert len(kept) == 0
    with pytest.raises(KeyError):
        kept["mine"]


def test_an_objects_identity_is_what_tells_it_from_others():
    metadata = {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "2"}
    assert identity_of(an_object("a", labels={"a": "b"})) == {"metadata": metadata}


def test_it_takes_a_fraction_of_the_text():
    kept = PackedObjects()
    obj = an_object("a", managedFields=[{"manager": "kubectl", "fieldsV1": {f"f:{n}": {} for n in range(100)}}])
    kept["a"] = obj
    assert len(kept._packed["a"]) < len(json.dumps(obj)) / 3
