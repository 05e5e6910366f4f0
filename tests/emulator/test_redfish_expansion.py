"""``$expand`` of a Redfish query: what it comes to is known before it is read."""

from __future__ import annotations

import pytest

from mews.emulator.dialects.redfish import query
from mews.emulator.dialects.redfish.messages import RedfishError


def linked(*uris: str, **more: object) -> dict[str, object]:
    return {"Members": [{"@odata.id": uri} for uri in uris], **more}


class Tree:
    """Resources by their URI; counts how often each is read."""

    def __init__(self, bodies: dict[str, dict[str, object]]) -> None:
        self.bodies = bodies
        self.read: list[str] = []

    def __call__(self, uri: str) -> dict[str, object] | None:
        self.read.append(uri)
        return self.bodies.get(uri)

    def expand(self, body: dict[str, object], how: str) -> dict[str, object]:
        return query.shape(body, {"$expand": how}, self, page=100)


def test_more_resources_than_an_answer_may_have_are_refused_before_they_are_read():
    many = [f"/{number}" for number in range(query.MOST)]
    tree = Tree({"/all": linked(*many)})
    with pytest.raises(RedfishError):
        tree.expand(linked("/all"), ".($levels=2)")
    assert tree.read == ["/all"]


def test_as_many_as_an_answer_may_have_are_expanded():
    many = [f"/{number}" for number in range(query.MOST - 1)]
    tree = Tree({"/all": linked(*many), **{uri: {"Id": uri} for uri in many}})
    shown = tree.expand(linked("/all"), ".($levels=2)")
    assert shown["Members"][0]["Members"][-1] == {"Id": many[-1]}


def test_a_resource_that_is_linked_twice_is_read_once_and_shown_twice():
    tree = Tree({"/a": {"Id": "a"}})
    shown = tree.expand(linked("/a", "/a"), ".")
    assert shown["Members"] == [{"Id": "a"}, {"Id": "a"}]
    assert tree.read == ["/a"]


def test_what_is_expanded_leaves_the_resources_as_they_are():
    bodies = {"/a": {"Id": "a", "Links": {"Up": {"@odata.id": "/a"}}}}
    tree = Tree(bodies)
    shown = tree.expand(linked("/a"), "*($levels=2)")
    assert shown["Members"][0]["Links"]["Up"]["Id"] == "a"
    assert bodies == {"/a": {"Id": "a", "Links": {"Up": {"@odata.id": "/a"}}}}


@pytest.mark.parametrize(("how", "subordinate", "link"), [(".", True, False), ("~", False, True), ("*", True, True)])
def test_which_links_are_expanded(how, subordinate, link):
    tree = Tree({"/a": {"Id": "a"}, "/b": {"Id": "b"}})
    shown = tree.expand(linked("/a", Links={"Peers": [{"@odata.id": "/b"}]}), how)
    assert ("Id" in shown["Members"][0], "Id" in shown["Links"]["Peers"][0]) == (subordinate, link)
