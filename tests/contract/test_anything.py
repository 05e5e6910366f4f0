"""Whatever is sent to a chassis, it gets an answer in the dialect's form, and only what was done changes the table."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.wire import InProcess, backend

STRINGS = st.one_of(
    st.sampled_from(["000100", "000500", "1", "2", "3", "01h", "02h", "zzh", "0", ""]), st.text(max_size=8)
)
VALUES = st.one_of(STRINGS, st.none(), st.integers(), st.booleans(), st.lists(STRINGS, max_size=2))
KEYS = st.sampled_from(["devid", "hostport", "gep", "port_gid", "dev_gid", "DevID", "x"])
BODIES = st.one_of(
    st.binary(max_size=40), st.dictionaries(KEYS, VALUES, max_size=4).map(lambda d: json.dumps(d).encode())
)
METHODS = st.sampled_from(["GET", "POST", "DELETE", "PUT", "HEAD", "BREW"])
PATHS = st.one_of(
    st.sampled_from(["/resources", "/allocation", "/h3api/v1/resources", "/h3api/v1/allocation", "/", "//"]),
    st.text(max_size=10).map(lambda text: "/" + text),
)
CHECKED = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def chassis() -> Iterator[InProcess]:
    with backend("in-process", "unattached") as made:
        assert isinstance(made, InProcess)
        yield made


@CHECKED
@given(method=METHODS, path=PATHS, body=BODIES)
def test_anything_gets_an_answer_of_its_dialect(chassis: InProcess, method: str, path: str, body: bytes):
    before = chassis.rack.table()["A"]
    status, text, headers = chassis.send(method, path, body)
    after = chassis.rack.table()["A"]
    assert status in (200, 204, 400, 404, 405)
    if path.startswith("/h3api/"):
        assert headers["content-type"] == "application/json"
        json.loads(text)
    changed = [device for device in before if before[device]["port"] != after[device]["port"]]
    well = status == 204 or (status == 200 and '"result":[true]' in text)
    assert len(changed) <= (1 if well else 0)
    for device in changed:
        assert (before[device]["port"] is None) is (method == "POST")
        assert after[device]["port"] in (None, "1", "2")
