"""All dialects on one chassis: whatever is done in any, all show what a dict says; and editors that race."""

from __future__ import annotations

import json
import random
import threading
from urllib.parse import urlencode

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mews.dialects import OURS
from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.dialects.cdim.service import API
from mews.emulator.dialects.fm.service import FABRIC
from mews.emulator.dialects.h3api import port_gid
from mews.emulator.dialects.identities import TENANT, machine_uuid, resource_uuid
from mews.emulator.dialects.redfish.service import RedfishFace
from mews.emulator.dialects.registry import face_of
from mews.emulator.dialects.wire import Request
from tests.contract.fm import TOKEN
from tests.contract.redfish import ENDPOINTS, ROOT, SESSIONS, ZONES, Client
from tests.contract.wire import backend
from tests.emulator.boxes import TIMED, spec

DEVICES = st.sampled_from(["d0", "d1", "d2", "d3", "nope"])
PORTS = st.sampled_from(["1", "2", "3", "9"])
CABLED = ("1", "2")
BLOCKS = f"{ROOT}/CompositionService/ResourceBlocks"
JSON = {"content-type": "application/json"}


class DialectMachine(RuleBasedStateMachine):
    """Each rule is an edit in one dialect, finished before the next."""

    @initialize()
    def power_on(self):
        self.now_s = 0.0
        self.box = EmulatedChassis(spec(devices=4, slots=5, profile=TIMED), random.Random(1))
        self.faces = {name: face_of(name).make(self.box, None) for name in OURS}
        redfish = self.faces["redfish"]
        assert isinstance(redfish, RedfishFace)
        login = {"UserName": "admin", "Password": redfish.password}
        self.token = self.ask("redfish", "POST", SESSIONS, login).headers["X-Auth-Token"]
        form = urlencode(
            {"client_id": "c", "client_secret": "s", "username": "admin", "grant_type": "password"}
            | {"password": self.faces["fm"].password}
        )
        granted = self.faces["fm"].begin(Request("POST", TOKEN, {}, {}, form.encode()), 0.0).reply
        self.bearer = json.loads(granted.body)["access_token"]
        self.model = dict.fromkeys(("d0", "d1", "d2", "d3"), "1")
        self.ready = set()

    token = bearer = ""

    def ask(self, dialect, method, path, body=None, query=None):
        headers = {**JSON, "x-auth-token": self.token} if self.token else JSON
        if dialect == "fm":
            headers = {**JSON, "authorization": f"Bearer {self.bearer}"}
        content = b"" if body is None else json.dumps(body).encode()
        face = self.faces[dialect]
        pending = face.begin(Request(method, path, query or {}, headers, content), self.now_s)
        self.now_s = max(self.now_s, pending.due_s)
        return face.finish(pending, self.now_s)

    def redfish(self, method, path, body):
        """Whether it went well, after all of it is done."""
        said = self.ask("redfish", method, path, body)
        while said.status == 202:
            self.now_s += 1
            monitor = said.headers["Location"]
            said = self.ask("redfish", "GET", monitor)
        return said.status < 300

    def attachable(self, device, port):
        return device in self.model and self.model[device] is None and port in CABLED

    def attached(self, well, device, port):
        if well:
            self.model[device] = port
            self.ready.discard(device)

    @rule(device=DEVICES, port=PORTS)
    def attach_by_h3api(self, device, port):
        body = {"gep": "0", "port_gid": port_gid(port), "dev_gid": device}
        well = json.loads(self.ask("h3api", "POST", "/h3api/v1/allocation", body).body)["result"] == [True]
        assert well is self.attachable(device, port)
        self.attached(well, device, port)

    @rule(device=DEVICES, port=PORTS)
    def attach_by_resource_pool(self, device, port):
        well = self.ask("resource-pool", "POST", "/allocation", {"devid": device, "hostport": port}).status == 204
        assert well is self.attachable(device, port)
        self.attached(well, device, port)

    @rule(device=DEVICES, port=PORTS)
    def attach_by_a_zone(self, device, port):
        link = {"Endpoint": {"@odata.id": f"{ENDPOINTS}/{device}"}}
        well = self.redfish("POST", f"{ZONES}/{port}/Actions/Zone.AddEndpoint", link)
        assert well is (self.attachable(device, port) and device not in self.ready)
        self.attached(well, device, port)

    @rule(device=DEVICES, host=st.sampled_from(["host-1", "host-2", "host-9"]))
    def attach_by_a_block(self, device, host):
        hosts = {"host-1": "1", "host-2": "2"}
        link = {"ResourceBlock": {"@odata.id": f"{BLOCKS}/{device}"}}
        path = f"{ROOT}/Systems/{host}/Actions/ComputerSystem.AddResourceBlock"
        well = self.redfish("POST", path, link)
        port = hosts.get(host, "9")
        assert well is (self.attachable(device, port) and device not in self.ready)
        self.attached(well, device, port)

    def fm(self, method, port, spec):
        """A request for one resource of the machine on a port, which only a cabled one is."""
        machine = machine_uuid({"1": "host-1", "2": "host-2"}.get(port, "nobody"))
        item = {"mach_uuid": machine, "resources": [{"res_specs": [{"res_type": "gpu", "res_num": 1, **spec}]}]}
        body = {"tenants": {"tenant_uuid": TENANT, "machines": [item]}}
        return self.ask("fm", method, f"{FABRIC}/machines/{machine}/update", body, {"tenant_uuid": TENANT})

    def resource(self, device):
        return resource_uuid(self.box.spec.name, device)

    @rule(device=DEVICES, port=PORTS)
    def attach_by_a_resource(self, device, port):
        condition = {"column": "res_uuid", "operator": "eq", "value": self.resource(device)}
        well = self.fm("PATCH", port, {"res_spec": {"condition": [condition]}}).status == 200
        assert well is self.attachable(device, port)
        self.attached(well, device, port)

    @rule(port=PORTS)
    def attach_by_a_model(self, port):
        """The first free one goes."""
        condition = {"column": "model", "operator": "eq", "value": self.box.table.spec("d0").model}
        said = self.fm("PATCH", port, {"res_spec": {"condition": [condition]}})
        free = [device for device, now in self.model.items() if now is None]
        assert (said.status == 200) is (bool(free) and port in CABLED)
        if said.status == 200:
            new = json.loads(said.body)["data"]["machines"][0]["resources"][0]["res_name"]
            assert new == free[0]
            self.attached(True, new, port)

    @rule(device=DEVICES, port=PORTS)
    def detach_by_a_resource(self, device, port):
        well = self.fm("DELETE", port, {"res_uuid": self.resource(device)}).status == 204
        assert well is (device in self.model and port in CABLED and self.model[device] == port)
        if well:
            self.model[device] = None

    def layout(self, operation, port, device):
        """The end of a layout of one procedure, for the node on a port, which only a cabled one is."""
        node = machine_uuid({"1": "host-1", "2": "host-2"}.get(port, "nobody"))
        procedure = {
            "operationID": 1, "operation": operation, "targetCPUID": node, "targetDeviceID": self.resource(device),
            "dependencies": [],
        }  # fmt: skip
        said = self.ask("cdim", "POST", f"{API}/layout-apply", {"procedures": [procedure]})
        assert said.status == 202
        path = f"{API}/layout-apply/{json.loads(said.body)['applyID']}"
        while (status := json.loads(self.ask("cdim", "GET", path).body)["status"]) == "IN_PROGRESS":
            self.now_s += 1
        return status == "COMPLETED"

    @rule(device=DEVICES, port=PORTS)
    def connect_by_a_layout(self, device, port):
        well = self.layout("connect", port, device)
        assert well is self.attachable(device, port)
        self.attached(well, device, port)

    @rule(device=DEVICES, port=PORTS)
    def disconnect_by_a_layout(self, device, port):
        well = self.layout("disconnect", port, device)
        assert well is (device in self.model and port in CABLED and self.model[device] == port)
        if well:
            self.model[device] = None

    @rule(device=DEVICES, dialect=st.sampled_from(["h3api", "resource-pool"]))
    def detach(self, device, dialect):
        if dialect == "h3api":
            body = {"gep": "0", "dev_gid": device}
            well = json.loads(self.ask(dialect, "DELETE", "/h3api/v1/allocation", body).body)["result"] == [True]
        else:
            well = self.ask(dialect, "DELETE", "/allocation", {"devid": device}).status == 204
        assert well is (device in self.model)
        if well:
            self.model[device] = None

    @rule(device=DEVICES, port=PORTS)
    def detach_by_a_zone(self, device, port):
        link = {"Endpoint": {"@odata.id": f"{ENDPOINTS}/{device}"}}
        well = self.redfish("POST", f"{ZONES}/{port}/Actions/Zone.RemoveEndpoint", link)
        assert well is (self.model.get(device) == port)
        if well:
            self.model[device] = None

    @rule(port=PORTS, devices=st.lists(DEVICES, unique=True, max_size=3))
    def replace_by_patch(self, port, devices):
        names = [f"hostport{port}_H1", *devices]
        links = [{"@odata.id": f"{ENDPOINTS}/{name}"} for name in names]
        well = self.redfish("PATCH", f"{ZONES}/{port}", {"Links": {"Endpoints": links}})
        known = all(device in self.model and self.model[device] in (None, port) for device in devices)
        fits = known and not set(devices) & self.ready and (port in CABLED or (port == "3" and not devices))
        assert well is fits
        if well:
            for device, now in self.model.items():
                if now == port or device in devices:
                    self.model[device] = port if device in devices else None

    @rule(device=DEVICES, ready=st.booleans())
    def make_ready(self, device, ready):
        path = f"{ROOT}/Chassis/{self.box.spec.name}/PCIeDevices/{device}"
        well = self.redfish("PATCH", path, {"ReadyToRemove": ready})
        assert well is (device in self.model)
        if well and ready:
            self.model[device] = None
            self.ready.add(device)
        elif well:
            self.ready.discard(device)

    @invariant()
    def all_of_them_show_what_the_dict_says(self):
        if not hasattr(self, "model"):
            return
        flat = json.loads(self.ask("h3api", "GET", "/h3api/v1/resources").body)
        assert {r["Dev_GID"]: r["Host_Port#"] or None for r in flat if "Dev_GID" in r} == self.model
        pool = json.loads(self.ask("resource-pool", "GET", "/resources").body)
        assert {r["devid"]: r["hostport"] or None for r in pool} == self.model
        data = json.loads(self.ask("fm", "GET", f"{FABRIC}/resources", query={"tenant_uuid": TENANT}).body)["data"]
        machines = {each["mach_uuid"]: str(each["mach_id"]) for each in data["machines"]}
        assert {r["res_name"]: machines.get(r["mach_uuid"]) for r in data["resources"]} == self.model
        found = json.loads(self.ask("cdim", "GET", f"{API}/resources", query={"detail": "true"}).body)["resources"]
        nodes = {machine_uuid("host-1"): "1", machine_uuid("host-2"): "2"}
        gpus = [each for each in found if each["device"]["type"] == "GPU"]
        linked = {each["device"]["attribute"]["name"]: [nodes[node] for node in each["nodeIDs"]] for each in gpus}
        assert linked == {device: [now] if now else [] for device, now in self.model.items()}
        listed = json.loads(self.ask("redfish", "GET", ENDPOINTS, query={"$expand": "."}).body)["Members"]
        zones = {each["Id"]: each["Links"]["Zones"] for each in listed if not each["Id"].startswith("hostport")}
        shown = {name: found[0]["@odata.id"].rpartition("/")[2] if found else None for name, found in zones.items()}
        assert shown == self.model
        for port in ("1", "2", "3"):
            zone = json.loads(self.ask("redfish", "GET", f"{ZONES}/{port}").body)
            names = [each["@odata.id"].rpartition("/")[2] for each in zone["Links"]["Endpoints"]]
            assert names == [f"hostport{port}_H1", *(device for device, now in self.model.items() if now == port)]


TestDialects = DialectMachine.TestCase
TestDialects.settings = settings(
    max_examples=15, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def test_editors_that_race_through_different_dialects_never_put_a_device_on_two_ports():
    """Every change starts where the one before it ended, and goes from a port to none or from none to a port."""
    with backend("in-process", profile={"attach": 0.5, "detach": 0.3}) as box:
        changes = []
        with box.rack.box("A") as chassis:
            chassis.events.listen(lambda event: changes.append(event) if event.event == "table-changed" else None)
        before = {device: row["port"] for device, row in box.rack.table()["A"].items()}
        devices = list(before)[:3]

        def pool(rng):
            device, port = rng.choice(devices), rng.choice("123")
            box.send("DELETE", "/allocation", json.dumps({"devid": device}).encode())
            box.send("POST", "/allocation", json.dumps({"devid": device, "hostport": port}).encode())

        client = Client(box)

        def zone(rng):
            device, port = rng.choice(devices), rng.choice("123")
            client.remove(device, rng.choice("123"))
            client.add(device, port)

        def edit(act, seed):
            rng = random.Random(seed)
            for _ in range(60):
                act(rng)

        threads = [threading.Thread(target=edit, args=(act, n)) for n, act in enumerate((pool, zone, pool, zone))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ports = dict(before)
        for event in changes:
            told = event.fields
            assert told["old_port"] == ports[told["device"]]
            assert (told["old_port"] is None) is not (told["new_port"] is None)
            ports[told["device"]] = told["new_port"]
        causes = {event.fields["cause"] for event in changes}
        assert causes == {"attach", "detach"}
        assert len(changes) > 50
