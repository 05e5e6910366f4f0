"""What stands on a node between who wants whole devices and who hands out parts of them."""

import pytest

from mews.kube.deviceplugin.release import (
    DeviceAnswer,
    DeviceRequest,
    HolderRecord,
    ReleaseState,
    device_requests,
    holder_annotation,
    holder_record,
    may_ask,
    requests_annotation,
)


def node(**annotations):
    return {"metadata": {"name": "n", "annotations": annotations}}


def test_requests_are_read_as_they_are_written_and_each_holder_has_its_own():
    wanted = {"GPU-1": DeviceRequest("a", 1000.5), "GPU-2": DeviceRequest("b", 2.0)}
    there = node(**requests_annotation("sharing", wanted))
    assert device_requests(there, "sharing") == wanted
    assert device_requests(there, "other") == {}


def test_an_answer_is_read_as_it_is_written():
    record = HolderRecord(
        {"GPU-1": 2, "GPU-2": 0},
        {
            "GPU-1": DeviceAnswer("a", ReleaseState.REFUSED, "shared by default/dev"),
            "GPU-2": DeviceAnswer("b", ReleaseState.RELEASING, until_s=17.25),
            "GPU-3": DeviceAnswer("c", ReleaseState.RELEASED),
        },
    )
    assert holder_record(node(**holder_annotation("sharing", record)), "sharing") == record


def test_who_may_ask_says_so_before_it_wants_anything():
    assert may_ask(node(**requests_annotation("sharing", {})), "sharing")
    assert not may_ask(node(), "sharing")
    assert not may_ask(None, "sharing")


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"answers": 3}', '{"answers": {"GPU-1": {"state": "perhaps", "request": "a"}}}', "null"]
)
def test_what_cannot_be_read_is_no_answer(text):
    assert holder_record(node(**{"device-holder.mews.dev/sharing": text}), "sharing") == HolderRecord()


@pytest.mark.parametrize("text", ["", "[]", '{"GPU-1": 3}', '{"GPU-1": {"request": "a"}}', '{"GPU-1": {"until": "x"}}'])
def test_what_cannot_be_read_is_no_request(text):
    assert device_requests(node(**{"device-requests.mews.dev/sharing": text}), "sharing") == {}
