"""A seeded sample of the fuzzer: 2,000 requests a face here, as many as wanted by ``make fuzz``. Fewer under TLS, where
what reads requests is the same code as without, but for the kubelets, which have no other port; and few who are not let
in, whose requests all end at the same place."""

import pytest

from tests.fuzz.groups import FACES, GROUPS
from tests.fuzz.judge import fuzz

REQUESTS, UNDER_TLS, NOT_LET_IN = 2000, 300, 500
STRANGERS = ("without it", "as nobody")

pytestmark = pytest.mark.wall


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_no_request_makes_a_face_fail(group):
    with group() as faces:
        assert tuple(face.name for face in faces) == FACES[group]
        accounts = [fuzz(face, count_for(face), seed=13) for face in faces]
    assert [finding for account in accounts for finding in account.findings] == []
    assert all(account.statuses["200"] for account in accounts if "without" not in account.face), "nothing got through"


def count_for(face):
    if face.name.endswith(STRANGERS):
        return UNDER_TLS if face.tls else NOT_LET_IN
    return UNDER_TLS if "under TLS" in face.name else REQUESTS
