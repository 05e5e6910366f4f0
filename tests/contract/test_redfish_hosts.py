"""Hosts as systems: switched off and on, started from something else, composed of blocks that are taken or not."""

from __future__ import annotations

import pytest

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.host.fleet import Hosts
from mews.emulator.inventory_file import load_hardware
from tests.contract.redfish import ROOT, Client, pass_time
from tests.contract.wire import FIXTURES

SYSTEM = f"{ROOT}/Systems/host-1"
BLOCKS = f"{ROOT}/CompositionService/ResourceBlocks"


@pytest.fixture
def client(box):
    return Client(box)


@pytest.fixture
def hosts(box):
    """All hosts, fed by what the chassis tells from now on."""
    made = Hosts(load_hardware(FIXTURES / "demo.yaml"), EmulationContext(1))
    made.begin(0.0)
    with box.rack.box("A") as chassis:
        chassis.events.listen(
            lambda event: made.on_event(event.chassis, event.number, event.event, event.fields, event.t + 1000.0)
        )
    return made


def reset(client, kind):
    return client.ask("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": kind})


def there(hosts, at_s=1e6):
    host = hosts.host("host-1")
    host.settle(max(at_s, host.now_s))
    return [function.gpuid for function in host.bus.functions() if function.ready]


def test_a_host_that_is_switched_off_has_no_functions_and_no_xid_and_gets_them_back(box, client, hosts):
    before = there(hosts, 10.0)
    assert len(before) == 4
    assert reset(client, "ForceOff").status == 204
    assert client.get(SYSTEM)["PowerState"] == "Off"
    assert there(hosts, 20.0) == []
    assert reset(client, "On").status == 204
    assert client.get(SYSTEM)["PowerState"] == "On"
    assert there(hosts) == before
    assert "Xid" not in "".join(hosts.host("host-1").events.log.lines())


def test_what_is_attached_while_the_host_is_off_is_there_when_it_is_on(client, hosts):
    reset(client, "ForceOff")
    assert client.remove("000100", "1").status == 204
    assert client.remove("000500", "2").status == 204
    assert client.add("000500", "1").status == 204
    assert there(hosts, 20.0) == []
    reset(client, "ForceOn")
    assert "0-000500" in there(hosts) and "0-000100" not in there(hosts)


@pytest.mark.parametrize("kind", ["ForceRestart", "GracefulRestart", "PowerCycle"])
def test_a_restart_takes_the_functions_away_and_brings_them_back(kind, box, client, hosts):
    before = there(hosts, 10.0)
    assert reset(client, kind).status == 204
    assert client.get(SYSTEM)["PowerState"] in ("PoweringOn", "On")
    assert there(hosts, 10.0) == [] or client.get(SYSTEM)["PowerState"] == "On"
    pass_time(box, 6.0)
    assert client.get(SYSTEM)["PowerState"] == "On"
    assert there(hosts) == before


def test_an_override_for_once_is_used_up_by_the_next_start(box, client):
    asked = {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
    assert client.ask("PATCH", SYSTEM, asked).status == 200
    assert client.get(SYSTEM)["Boot"]["BootSourceOverrideEnabled"] == "Once"
    reset(client, "ForceRestart")
    pass_time(box, 6.0)
    assert client.get(SYSTEM)["Boot"]["BootSourceOverrideEnabled"] == "Disabled"
    assert client.get(SYSTEM)["Boot"]["BootSourceOverrideTarget"] == "None"


def test_in_its_setup_no_driver_runs_on_a_host_however_often_it_starts(box, client, hosts):
    asked = {"Boot": {"BootSourceOverrideTarget": "BiosSetup", "BootSourceOverrideEnabled": "Continuous"}}
    assert client.ask("PATCH", SYSTEM, asked).status == 200
    for _ in range(2):
        reset(client, "ForceRestart")
        pass_time(box, 6.0)
        assert there(hosts) == []
    client.ask("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideEnabled": "Disabled"}})
    reset(client, "ForceRestart")
    pass_time(box, 6.0)
    assert len(there(hosts)) == 4


@pytest.mark.parametrize(
    ("boot", "message"),
    [
        ({"BootSourceOverrideTarget": "Floppy"}, "PropertyValueNotInList"),
        ({"BootSourceOverrideEnabled": 1}, "PropertyValueTypeError"),
        ({"BootOrder": []}, "PropertyUnknown"),
    ],
)
def test_an_override_that_is_none_is_refused(boot, message, client):
    refused = client.ask("PATCH", SYSTEM, {"Boot": boot})
    assert (refused.status, refused.messages) == (400, [message])


def test_a_reset_that_is_none_is_refused_and_changes_nothing(client, hosts):
    refused = reset(client, "Nmi")
    assert (refused.status, refused.messages) == (400, ["ActionParameterValueNotInList"])
    assert client.get(SYSTEM)["PowerState"] == "On"
    assert len(there(hosts)) == 4


def compose(client, name, *blocks):
    links = {"ResourceBlocks": [{"@odata.id": f"{BLOCKS}/{block}"} for block in blocks]}
    return client.ask("POST", f"{ROOT}/Systems", {"Name": name, "Links": links})


def test_composing_with_a_hosts_block_that_is_taken_is_refused_and_begins_nothing(client):
    assert client.remove("000500", "2").status == 204
    assert compose(client, "first", "host-1").status == 201
    assert client.get(f"{BLOCKS}/host-1")["CompositionStatus"]["CompositionState"] == "Composed"
    refused = compose(client, "second", "host-1", "000500")
    assert (refused.status, refused.messages) == (409, ["ResourceInUse"])
    assert client.get(f"{BLOCKS}/000500")["CompositionStatus"]["CompositionState"] == "Unused"
    assert f"{ROOT}/Systems/second" not in client.members(f"{ROOT}/Systems")
    assert client.ask("DELETE", f"{ROOT}/Systems/first").status == 204
    assert compose(client, "second", "host-1", "000500").status == 201
