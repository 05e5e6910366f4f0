"""What the components write for each other is read as it was meant, however often it is read."""

import pytest
from msgspec.structs import replace

from mews.systems.kubecomp.policy import Consent
from mews.systems.kubecomp.records import NodeReport, heartbeat_data, node_report, report_data

REPORT = NodeReport(
    announced=("0-a",), held={"0-a": "default/user"}, consents={"0-b": Consent("r1", 12.5)}, heartbeat_s=20.0
)


def test_a_report_is_read_as_it_was_written_with_the_heartbeat_of_each_writing():
    data = report_data(REPORT)
    assert node_report({"data": data}) == REPORT
    later = replace(REPORT, heartbeat_s=25.0)
    assert node_report({"data": {**data, **heartbeat_data(later)}}) == later


@pytest.mark.parametrize("change", [{"held": {}}, {"consents": {}}, {"lent": {"0-a": 1}}, {"announced": ()}])
def test_a_report_repeats_the_one_before_when_nothing_but_its_heartbeat_is_new(change):
    later = replace(REPORT, heartbeat_s=25.0)
    assert later.repeats(REPORT)
    assert not replace(later, **change).repeats(REPORT)
    assert report_data(replace(later, **change)) != report_data(later)


@pytest.mark.parametrize("obj", [None, {}, {"data": {"report": "no JSON"}}, {"data": {"report": "[]"}}])
def test_what_is_no_report_is_none(obj):
    assert node_report(obj) is None
