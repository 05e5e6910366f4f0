from mews.systems.pooldra.config import PoolChassis
from mews.systems.pooldra.offers import device_of, lost_fields, plan, slices_of
from mews.systems.pooldra.policy import Slot

CHASSIS = PoolChassis("A", 0, {"a": "1", "b": "2"})
ONE, TWO = Slot("1", "GPU-A"), Slot("2", "GPU-B")


def wanted(pool, **nodes):
    def made(slot, on_node):
        return device_of(slot, CHASSIS, {"productName": "V100"}, on_node=on_node)

    return slices_of(CHASSIS, pool, nodes, made)


def stored(there, found):
    return {**there, **{each["metadata"]["name"]: each for each in found}}


def applied(there, state):
    after = stored(there, state.written)
    return {name: each for name, each in after.items() if name not in state.deleted}


def generations(there):
    return {
        name: (each["spec"]["pool"]["generation"], each["spec"]["pool"]["resourceSliceCount"])
        for name, each in there.items()
    }


def test_a_device_of_the_pool_binds_to_its_node_and_has_conditions_and_the_drivers_attributes():
    (found,) = wanted([ONE])
    (device,) = found.devices
    assert device["name"] == "gpu-a"
    assert device["bindsToNode"] is True
    assert device["bindingConditions"] == ["pooldra.mews.dev/Attached"]
    assert device["bindingFailureConditions"] == ["pooldra.mews.dev/AttachFailed", "pooldra.mews.dev/Reallocate"]
    assert {name: each["string"] for name, each in device["attributes"].items()} == {
        "productName": "V100",
        "type": "gpu",
        "uuid": "GPU-A",
        "pooldra.mews.dev/chassis": "A",
        "pooldra.mews.dev/slot": "1",
    }


def test_the_pools_own_slice_is_for_the_nodes_that_are_cabled_to_the_chassis():
    (body,) = plan(CHASSIS, wanted([ONE]), {}).written
    (term,) = body["spec"]["nodeSelector"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a", "b"]}]}
    assert body["spec"]["driver"] == "gpu.nvidia.com"
    assert body["spec"]["pool"] == {"name": "chassis-0", "generation": 1, "resourceSliceCount": 1}


def test_what_a_node_has_is_tried_before_what_must_be_attached_to_it():
    names = [each.name for each in wanted([ONE], a=[TWO])]
    assert sorted(names) == ["pooldra-chassis-0-node-a", "pooldra-chassis-0-pool"]
    (device,) = wanted([ONE], a=[TWO])[1].devices
    assert device.keys() == {"name", "attributes", "bindingConditions", "bindingFailureConditions"}


def test_a_change_that_needs_one_write_keeps_the_generation():
    there = applied({}, plan(CHASSIS, wanted([ONE, TWO]), {}))
    assert plan(CHASSIS, wanted([ONE, TWO]), there).written == ()
    state = plan(CHASSIS, wanted([ONE]), there)
    assert generations(applied(there, state)) == {"pooldra-chassis-0-pool": (1, 1)}


def test_a_device_that_moves_begins_a_generation_of_all_slices():
    there = applied({}, plan(CHASSIS, wanted([ONE, TWO]), {}))
    there = applied(there, plan(CHASSIS, wanted([ONE], a=[TWO]), there))
    assert generations(there) == {"pooldra-chassis-0-pool": (2, 2), "pooldra-chassis-0-node-a": (2, 2)}
    there = applied(there, plan(CHASSIS, wanted([ONE, TWO]), there))
    assert generations(there) == {"pooldra-chassis-0-pool": (3, 1)}


def test_writes_that_were_cut_short_are_made_again_with_a_new_generation():
    there = applied({}, plan(CHASSIS, wanted([ONE, TWO]), {}))
    state = plan(CHASSIS, wanted([ONE], a=[TWO]), there)
    half = stored(there, state.written[:1])
    again = applied(half, plan(CHASSIS, wanted([ONE], a=[TWO]), half))
    assert generations(again) == {"pooldra-chassis-0-pool": (3, 2), "pooldra-chassis-0-node-a": (3, 2)}
    assert plan(CHASSIS, wanted([ONE], a=[TWO]), again).written == ()


def test_fields_that_the_api_server_drops_are_named():
    (body,) = plan(CHASSIS, wanted([ONE]), {}).written
    bare = {"spec": {"devices": [{"name": "gpu-a", "attributes": {}}]}}
    assert lost_fields(body, bare) == ["bindingConditions", "bindingFailureConditions", "bindsToNode"]
    assert lost_fields(body, body) == []
