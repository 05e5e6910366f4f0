"""What scenarios share is ended as a whole, whatever of it fails."""

import pytest

from mews.harness.clusters.session import ClusterSession
from mews.harness.errors import RequirementError


class Part:
    """Ends, or cannot be ended."""

    def __init__(self, said=None):
        self.said = said
        self.ended = False

    def close(self):
        self.ended = True
        if self.said is not None:
            raise RequirementError(self.said)


def session_of(**parts):
    session = ClusterSession()
    for name, part in parts.items():
        session.share(name, lambda part=part: part, Part.close)
    return session


def test_what_cannot_be_ended_keeps_nothing_else_from_it():
    kind, servers = Part(), Part()
    with (
        pytest.raises(RequirementError, match="namespaces are left"),
        session_of(site=Part("namespaces are left"), kind=kind, servers=servers),
    ):
        pass
    assert kind.ended
    assert servers.ended


def test_why_a_run_ended_is_told_before_what_it_left():
    with (
        pytest.raises(RequirementError, match=r"^no image\nnamespaces are left$"),
        session_of(site=Part("namespaces are left")),
    ):
        raise RequirementError("no image")


def test_what_is_shared_is_made_once_and_ended_before_what_was_made_earlier():
    ended, made = [], []
    with ClusterSession() as session:
        for name in ("servers", "kind", "servers"):
            session.share(name, lambda name=name: made.append(name) or name, ended.append)
    assert made == ["servers", "kind"]
    assert ended == ["kind", "servers"]
