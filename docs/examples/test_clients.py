"""A client of each dialect, tested by the plugin: what it sends, and what it does to the chassis."""

import ssl
import time

import pytest
from clients import H3Api, Redfish, ResourcePool

pytestmark = pytest.mark.mews(speed=1000)


def redfish(chassis):
    """A client that has logged in."""
    context = ssl.create_default_context(cafile=chassis.ca)
    return Redfish(chassis.urls["A"]["redfish"], **chassis.accounts["redfish"], context=context)


CLIENTS = {
    "h3api": lambda chassis: H3Api(chassis.urls["A"]["h3api"]),
    "resource-pool": lambda chassis: ResourcePool(chassis.urls["A"]["resource-pool"]),
    "redfish": redfish,
}


def until(look):
    """Redfish answers before a move is done."""
    deadline = time.monotonic() + 30
    while not look():
        assert time.monotonic() < deadline


@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_device_is_detached_and_attached_elsewhere(mews_chassis, dialect):
    mine = CLIENTS[dialect](mews_chassis)
    assert mine.ports()["000100"] == "1"
    mine.detach("000100")
    until(lambda: mews_chassis.table()["A"]["000100"]["port"] is None)
    mine.attach("000100", "2")
    until(lambda: mews_chassis.table()["A"]["000100"]["port"] == "2")
    assert mine.ports()["000100"] == "2"


def test_the_box_is_asked_once(mews_chassis):
    assert H3Api(mews_chassis.urls["A"]["h3api"]).attach("000100", "2") is False  # it is on port 1
    body = {"port_gid": "02h", "dev_gid": "000100"}
    mews_chassis.requests.assert_requested("POST", "/h3api/v1/allocation", body=body, times=1)
    mews_chassis.requests.assert_not_requested("DELETE")


def test_a_lying_box_is_not_believed(mews_chassis):
    mews_chassis.fault("A", "lying-result", count=1)
    mine = H3Api(mews_chassis.urls["A"]["h3api"])
    assert mine.detach("000100") is False
    assert mine.ports()["000100"] == ""
