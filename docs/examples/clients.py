"""A client of each of the chassis' dialects, on the standard library alone: list the devices, attach and detach one."""

import json
import urllib.request


def ask(method, url, body=None, headers=None, context=None):
    """The JSON of an answer and its headers; urllib.error.HTTPError for a refusal."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})}, method=method)
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        return json.loads(answer.read() or b"null"), answer.headers


class H3Api:
    """The Falcon 4005's own."""

    def __init__(self, url):
        self.url = f"{url}/h3api/v1"

    def ports(self):
        """Device -> its host port, "" while it is free."""
        table, _ = ask("GET", f"{self.url}/resources")
        return {each["Dev_GID"]: each["Host_Port#"] for each in table if "Dev_GID" in each}

    def attach(self, device, port):
        """Whether the box says that it did."""
        body = {"gep": "0", "port_gid": f"{int(port):02X}h", "dev_gid": device}
        return ask("POST", f"{self.url}/allocation", body)[0]["result"] == [True]

    def detach(self, device):
        """Likewise."""
        return ask("DELETE", f"{self.url}/allocation", {"gep": "0", "dev_gid": device})[0]["result"] == [True]


class ResourcePool:
    """KubeComp's simulator."""

    def __init__(self, url):
        self.url = url

    def ports(self):
        """Device -> its host port, "" while it is free."""
        table, _ = ask("GET", f"{self.url}/resources")
        return {each["devid"]: each["hostport"] for each in table}

    def attach(self, device, port):
        """A refusal is an HTTPError."""
        ask("POST", f"{self.url}/allocation", {"devid": device, "hostport": port})

    def detach(self, device):
        """Likewise."""
        ask("DELETE", f"{self.url}/allocation", {"devid": device})


class Redfish:
    """DMTF's: a zone of the fabric for each host port, devices are its endpoints."""

    def __init__(self, url, user, password, context):
        self.url, self.context, self.headers = f"{url}/redfish/v1", context, {}
        login = {"UserName": user, "Password": password}
        self.headers = {"X-Auth-Token": self._ask("POST", "/SessionService/Sessions", login)[1]["X-Auth-Token"]}

    def _ask(self, method, path, body=None):
        return ask(method, self.url + path, body, self.headers, self.context)

    def ports(self):
        """Device -> its host port, for those that have one."""
        found = {}
        for zone in self._ask("GET", "/Fabrics/PCIe/Zones?$expand=.($levels=1)")[0]["Members"]:
            for endpoint in zone["Links"]["Endpoints"]:
                name = endpoint["@odata.id"].rpartition("/")[2]
                if not name.startswith("hostport"):
                    found[name] = zone["Id"]
        return found

    def attach(self, device, port):
        """Begin it: 202 and a task where it takes its time."""
        self._move("AddEndpoint", device, port)

    def detach(self, device):
        """Likewise, from the port that it is on."""
        self._move("RemoveEndpoint", device, self.ports()[device])

    def _move(self, action, device, port):
        endpoint = {"Endpoint": {"@odata.id": f"/redfish/v1/Fabrics/PCIe/Endpoints/{device}"}}
        self._ask("POST", f"/Fabrics/PCIe/Zones/{port}/Actions/Zone.{action}", endpoint)
