"""Redfish events: streams, subscriptions, the log."""

from __future__ import annotations

import http.client
import http.server
import json
import queue
import threading

import pytest

from tests.contract.redfish import ROOT, ZONES, Client, pass_time
from tests.contract.wire import backend

SUBSCRIPTIONS = f"{ROOT}/EventService/Subscriptions"
LOG = f"{ROOT}/Managers/BMC/LogServices/Table"


@pytest.fixture
def client(box):
    return Client(box)


@pytest.fixture(scope="module")
def served():
    with backend("http") as made:
        yield made


class Stream:
    """An open stream of server-sent events."""

    def __init__(self, box, client, query="", **headers):
        self._connection = box.connection(ROOT)
        sent = {"X-Auth-Token": client.token, "Accept": "text/event-stream", **headers}
        self._connection.request("GET", f"{ROOT}/EventService/SSE{query}", headers=sent)
        self.response = self._connection.getresponse()

    def events(self, count):
        """The next events, with their IDs."""
        found = []
        number = None
        while len(found) < count:
            line = self.response.readline().decode().strip()
            if line.startswith("id: "):
                number = int(line[4:])
            if line.startswith("data: "):
                found.append((number, json.loads(line[6:])))
        return found

    def rest(self):
        """What comes until the server ends it."""
        return self.response.read()

    def close(self):
        self._connection.close()


def message_ids(events):
    return [each["MessageId"].rpartition(".")[2] for _, event in events for each in event["Events"]]


@pytest.mark.wall
def test_a_stream_tells_what_happens_to_the_table_whoever_does_it(served):
    client = Client(served)
    stream = Stream(served, client)
    try:
        assert stream.response.getheader("Content-Type") == "text/event-stream"
        assert served.send("DELETE", "/allocation", b'{"devid":"000100"}')[0] == 204
        events = stream.events(2)
        assert message_ids(events) == ["ZoneModified", "DownstreamLinkDropped"]
        assert events[0][1]["@odata.type"] == "#Event.v1_12_0.Event"
        assert events[0][1]["Events"][0]["OriginOfCondition"] == {"@odata.id": f"{ZONES}/1"}
    finally:
        stream.close()


@pytest.mark.wall
def test_a_reader_that_comes_back_hears_what_it_missed(served):
    client = Client(served)
    stream = Stream(served, client)
    client.add("000100", "1")
    (last, _), *_ = stream.events(1)
    stream.close()
    client.remove("000100", "1")
    again = Stream(served, client, **{"Last-Event-ID": str(last)})
    try:
        assert message_ids(again.events(3))[1:] == ["ZoneModified", "DownstreamLinkDropped"]
    finally:
        again.close()


@pytest.mark.wall
def test_a_stream_ends_with_its_subscription_but_not_with_its_session(served):
    client, other = Client(served), Client(served)
    before = set(client.members(SUBSCRIPTIONS))
    stream = Stream(served, other)
    (mine,) = set(client.members(SUBSCRIPTIONS)) - before
    assert client.get(mine)["SubscriptionType"] == "SSE"
    assert other.ask("DELETE", other.login.headers["location"]).status == 204
    assert client.ask("POST", f"{ROOT}/EventService/Actions/EventService.SubmitTestEvent", {}).status == 204
    assert message_ids(stream.events(1)) == ["TestMessage"]
    assert client.ask("DELETE", mine).status == 204
    stream.rest()
    stream.close()


@pytest.fixture
def listener():
    """Takes what is posted: a queue of (path, headers, event), and its URL."""
    got: queue.Queue = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.put((self.path, dict(self.headers), json.loads(body)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield got, f"http://127.0.0.1:{server.server_port}/sink?x=1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.wall
def test_a_subscriber_gets_the_events_that_it_wants_by_post(served, listener):
    got, url = listener
    client = Client(served)
    body = {
        "Destination": url,
        "Protocol": "Redfish",
        "Context": "mine",
        "ResourceTypes": ["Zone"],
        "HttpHeaders": [{"X-Secret": "s"}],
    }
    made = client.ask("POST", SUBSCRIPTIONS, body)
    assert made.status == 201
    client.add("000200", "2")
    client.remove("000200", "1")
    client.add("000200", "2")
    (path, headers, first), (_, _, second) = got.get(timeout=60), got.get(timeout=60)
    assert (path, headers["X-Secret"], first["Context"]) == ("/sink?x=1", "s", "mine")
    origins = [event["Events"][0]["OriginOfCondition"]["@odata.id"] for event in (first, second)]
    assert origins == [f"{ZONES}/1", f"{ZONES}/2"]
    assert client.get(made.headers["location"])["HttpHeaders"] == []
    assert client.ask("DELETE", made.headers["location"]).status == 204


@pytest.mark.wall
def test_a_destination_that_is_not_there_is_given_up_as_its_policy_says(served):
    client = Client(served)
    body = {
        "Destination": "http://127.0.0.1:1/",
        "Protocol": "Redfish",
        "DeliveryRetryPolicy": "TerminateAfterRetries",
    }
    made = client.ask("POST", SUBSCRIPTIONS, body).headers["location"]
    client.ask("POST", f"{ROOT}/EventService/Actions/EventService.SubmitTestEvent", {})
    clock = served.rack.clock
    until_s = clock.real_s() + 10
    while client.ask("GET", made).status == 200 and clock.real_s() < until_s:
        clock.pause(0.2)
    assert client.ask("GET", made).status == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"Destination": "http://127.0.0.1/"},
        {"Destination": "ftp://127.0.0.1/", "Protocol": "Redfish"},
        {"Destination": "http://127.0.0.1/", "Protocol": "FTP"},
        {"Destination": "http://127.0.0.1/", "Protocol": "Redfish", "Bogus": 1},
        {"Destination": "http://127.0.0.1/", "Protocol": "Redfish", "ResourceTypes": "Zone"},
        {"Destination": "http://127.0.0.1/", "Protocol": "Redfish", "HttpHeaders": [{"A": "b\r\nc"}]},
        {"Destination": "http://127.0.0.1/", "Protocol": "Redfish", "DeliveryRetryPolicy": "Never"},
    ],
)
def test_a_subscription_that_cannot_be_made_is_400(client, body):
    before = client.members(SUBSCRIPTIONS)
    assert client.ask("POST", SUBSCRIPTIONS, body).status == 400
    assert client.members(SUBSCRIPTIONS) == before


def test_each_edit_of_the_table_is_logged_whichever_dialect_made_it(client, box):
    assert client.ask("POST", f"{LOG}/Actions/LogService.ClearLog").status == 204
    client.remove("000100", "1")
    box.send("POST", "/allocation", b'{"devid":"000100","hostport":"3"}')
    with box.rack.box("A") as chassis:
        chassis.edits.edit("000100", "2", box.rack.clock.now())
    entries = client.get(f"{LOG}/Entries?$expand=.($levels=1)")["Members"]
    moves = [each for each in entries if each["MessageId"] == "Fabric.1.1.ZoneModified"]
    assert [each["Links"]["OriginOfCondition"]["@odata.id"][-1] for each in moves] == ["1", "3", "3", "2"]
    assert [each["Message"].rpartition("(")[2] for each in moves] == ["detach).", "attach).", "edit).", "edit)."]


def test_sensors_move_with_the_time_and_with_what_is_attached(client, box):
    power, inlet = f"{ROOT}/Chassis/A/Sensors/TotalPower", f"{ROOT}/Chassis/A/Sensors/Inlet"
    first, air = client.get(power)["Reading"], client.get(inlet)["Reading"]
    pass_time(box, 30)
    assert client.get(inlet)["Reading"] != air
    for device in ("000100", "000200", "000300"):
        client.remove(device, "1")
    assert client.get(power)["Reading"] < first - 40


@pytest.mark.parametrize(
    "text", ["Reading gt 3", "MetricReportDefinition eq 'x'", "ResourceType", "ResourceType eq 'Task' and Id eq '1'"]
)
def test_a_streams_filter_by_what_is_not_offered_is_refused(text, client):
    said = client.ask("GET", f"{ROOT}/EventService/SSE?$filter={text}", Accept="text/event-stream")
    assert (said.status, said.messages) == (400, ["QueryParameterValueError"])
    offered = client.get(f"{ROOT}/EventService")["SSEFilterPropertiesSupported"]
    assert [name for name, is_offered in offered.items() if is_offered and name in text] in ([], ["ResourceType"])


def test_an_unknown_query_on_the_stream_is_refused(client):
    assert client.ask("GET", f"{ROOT}/EventService/SSE?$orderby=x").status == 501
    assert client.ask("GET", f"{ROOT}/EventService/SSE?since=1").status == 400


@pytest.mark.wall
def test_a_filtered_stream_hears_what_it_asked_for_and_nothing_else(served):
    client = Client(served)
    stream = Stream(served, client, query="?$filter=ResourceType%20eq%20'Zone'")
    device = client.get(f"{ZONES}/3")["Links"]["Endpoints"][-1]["@odata.id"].rpartition("/")[2]
    assert client.remove(device, "3").status == 204
    assert client.add(device, "3").status == 204
    kinds = [each["OriginOfCondition"]["@odata.id"] for _, event in stream.events(2) for each in event["Events"]]
    assert kinds == [f"{ZONES}/3", f"{ZONES}/3"]
    stream.close()
