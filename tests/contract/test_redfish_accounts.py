"""Redfish accounts: roles, lockout, passwords that must be changed."""

from __future__ import annotations

import itertools

import pytest

from tests.contract.redfish import ACCOUNTS, ROOT, SESSIONS, Client, pass_time

NUMBERS = itertools.count()
GOOD = "Str0ng-enough"


@pytest.fixture
def client(box):
    return Client(box)


@pytest.fixture
def account(client):
    """Makes accounts that are gone afterwards: role -> (URI, user)."""
    made = []

    def make(role, **more):
        user = f"user{next(NUMBERS)}"
        said = client.ask("POST", ACCOUNTS, {"UserName": user, "Password": GOOD, "RoleId": role, **more})
        assert said.status == 201, said
        made.append(said.headers["location"])
        return said.headers["location"], user

    yield make
    for uri in made:
        client.ask("DELETE", uri)


@pytest.mark.parametrize(
    ("role", "edit", "reset", "create"),
    [("Administrator", 204, 204, 201), ("Operator", 204, 403, 403), ("ReadOnly", 403, 403, 403)],
)
def test_a_role_may_do_what_its_privileges_say(client, box, account, role, edit, reset, create):
    _, user = account(role)
    other = Client(box, user, GOOD)
    assert other.ask("GET", f"{ROOT}/Systems").status == 200
    assert other.remove("000100", "1").status == edit
    assert other.ask("POST", f"{ROOT}/Managers/BMC/LogServices/Table/Actions/LogService.ClearLog").status == reset
    body = {"UserName": f"made-by-{role}", "Password": GOOD, "RoleId": "ReadOnly"}
    made = other.ask("POST", ACCOUNTS, body)
    assert made.status == create
    if made.status == 201:
        assert client.ask("DELETE", made.headers["location"]).status == 204


def test_a_password_is_never_shown_and_ones_own_may_be_changed(client, box, account):
    uri, user = account("ReadOnly")
    other = Client(box, user, GOOD)
    assert other.get(uri)["Password"] is None
    assert other.ask("PATCH", uri, {"RoleId": "Administrator"}).status == 403
    assert other.ask("PATCH", f"{ACCOUNTS}/1", {"Password": GOOD}).status == 403
    assert other.ask("PATCH", uri, {"Password": "short"}).status == 400
    tag = other.get(uri)["@odata.etag"]
    assert other.ask("PATCH", uri, {"Password": "An0ther-good"}).status == 200
    assert other.get(uri)["@odata.etag"] != tag
    assert Client(box, user, GOOD).login.status == 401
    assert Client(box, user, "An0ther-good").login.status == 201


def test_a_password_that_must_be_changed_allows_nothing_else(client, box, account):
    uri, user = account("Administrator", PasswordChangeRequired=True)
    other = Client(box, user, GOOD)
    assert other.login.status == 201
    assert other.login.body["@Message.ExtendedInfo"][0]["MessageId"].endswith("PasswordChangeRequired")
    said = other.ask("GET", f"{ROOT}/Systems")
    assert (said.status, said.messages) == (403, ["PasswordChangeRequired"])
    assert other.get(uri)["PasswordChangeRequired"] is True
    assert other.ask("PATCH", uri, {"Password": "Ch4nged-now"}).body["PasswordChangeRequired"] is False
    assert other.ask("GET", f"{ROOT}/Systems").status == 200


def test_too_many_wrong_passwords_lock_an_account_for_a_while(client, box, account):
    uri, user = account("Operator")
    box.rack.clock.speed = 1
    for _ in range(5):
        assert Client(box, user, "wrong-password").login.status == 401
    assert client.get(uri)["Locked"] is True
    assert Client(box, user, GOOD).login.status == 401
    assert client.ask("PATCH", uri, {"Locked": False}).body["Locked"] is False
    assert Client(box, user, GOOD).login.status == 201
    for _ in range(5):
        Client(box, user, "wrong-password")
    box.rack.clock.speed = 1000
    pass_time(box, 31)
    assert Client(box, user, GOOD).login.status == 201


def test_a_disabled_account_is_out_at_once(client, box, account):
    uri, user = account("Operator")
    other = Client(box, user, GOOD)
    assert client.ask("PATCH", uri, {"Enabled": False}).body["Enabled"] is False
    assert other.ask("GET", f"{ROOT}/Systems").status == 401
    assert Client(box, user, GOOD).login.status == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"UserName": "x", "Password": GOOD},
        {"UserName": "x", "Password": "short", "RoleId": "ReadOnly"},
        {"UserName": "admin", "Password": GOOD, "RoleId": "ReadOnly"},
        {"UserName": "x", "Password": GOOD, "RoleId": "Nope"},
        {"UserName": "a:b", "Password": GOOD, "RoleId": "ReadOnly"},
        {"UserName": "x", "Password": GOOD, "RoleId": "ReadOnly", "Bogus": 1},
    ],
)
def test_an_account_that_cannot_be_made_is_400(client, body):
    before = client.members(ACCOUNTS)
    said = client.ask("POST", ACCOUNTS, body)
    assert said.status == 400
    assert GOOD not in str(said.body)
    assert client.members(ACCOUNTS) == before


def test_the_last_administrator_stays(client):
    assert client.ask("DELETE", f"{ACCOUNTS}/1").status == 400


def test_a_session_of_somebody_else_is_ended_by_a_manager_only(client, box, account):
    _, user = account("Operator")
    other = Client(box, user, GOOD)
    assert other.ask("DELETE", client.login.headers["location"]).status == 403
    assert client.ask("DELETE", other.login.headers["location"]).status == 204
    assert other.ask("GET", SESSIONS).status == 401


def test_a_session_that_nobody_uses_ends(client, box):
    service = f"{ROOT}/SessionService"
    other = Client(box)
    box.rack.clock.speed = 1
    assert client.ask("PATCH", service, {"SessionTimeout": 30}).body["SessionTimeout"] == 30
    box.rack.clock.speed = 1000
    pass_time(box, 31)
    box.rack.clock.speed = 1
    assert other.ask("GET", service).status == 401
    fresh = Client(box)
    assert fresh.ask("PATCH", service, {"SessionTimeout": 1800}).status == 200
    assert fresh.ask("PATCH", service, {"SessionTimeout": 1}).status == 400
    box.rack.clock.speed = 1000
