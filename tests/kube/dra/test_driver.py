from mews.kube.dra.driver import devices_in


def test_a_slice_without_devices_may_have_null_for_them():
    assert devices_in({"spec": {"devices": None}}) == devices_in({"spec": {}}) == []
    assert devices_in({"spec": {"devices": [{"name": "gpu-0"}]}}) == [{"name": "gpu-0"}]
