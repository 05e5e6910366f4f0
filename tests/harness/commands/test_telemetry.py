"""``mews telemetry``: over a real chassis and real hosts of this process."""

import json
import os

import pytest

from mews.harness.cli import exit_code
from mews.harness.commands import instances
from mews.harness.commands.instances import UpInstance, born
from tests.emulator.hostd.test_telemetry import Stack, until

pytestmark = pytest.mark.wall


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    made = Stack(tmp_path_factory.mktemp("telemetry"))
    ready = {**made.chassis.ready(), "hosts": made.hosts.ready()["control"]}
    (made.folder / "ready.json").write_text(json.dumps(ready))
    yield made
    made.stop()


@pytest.fixture
def mews(stack, monkeypatch, capsys):
    """(code, output, complaint) of a command line."""
    instance = UpInstance("mews", os.getpid(), born(os.getpid()), str(stack.folder))
    monkeypatch.setattr(instances, "recorded", lambda: [instance])

    def run(*words):
        code = exit_code(["telemetry", *words])
        output = capsys.readouterr()
        return code, output.out, output.err

    return run


def test_boards_are_shown_and_set(mews, stack):
    assert mews("--device", "000100", "temperature=91.5", "power=100", "utilization=30") == (0, "", "")
    code, out, _ = mews("--device", "0-000100")
    head, row = out.splitlines()
    assert code == 0
    assert head.split()[:3] == ["device", "host", "power"]
    assert row.split()[:4] == ["000100", "host-1", "100.0", "W"]
    assert row.endswith("temperature=91.5 power=100 utilization=30")
    assert mews("all=none")[0] == 0
    code, out, _ = mews("--json")
    shown = json.loads(out)["A"]
    assert len(shown) == 12
    assert all(one["set"] == {} for one in shown.values())


def test_errors_are_counted_by_the_driver_of_the_host(mews, stack):
    assert mews("--device", "000200", "ecc_corrected=4", "xid=63")[0] == 0
    counters = lambda: stack.ask("GET", "/v1/telemetry")["A"]["000200"]["counters"]  # noqa: E731
    until(lambda: counters()["ecc_volatile_corrected"] == 4, "the errors to be counted")
    view = stack.ask("GET", "/v1/hosts", control=stack.hosts.ready()["control"])
    assert any("Xid" in line and "63" in line for line in view["host-1"]["log"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["power"], "mews telemetry: 'power': must be NAME=VALUE, such as power=100 or power=none\n"),
        (["watts=3"], "mews telemetry: set 'watts': must be one of "),
        (
            ["power=999"],
            "mews telemetry: power 999: must be a number from 0 to 250 watts on a Tesla V100-PCIE-32GB, or",
        ),
        (["xid=x"], "mews telemetry: xid 'x': must be a whole number of at least 0\n"),
        (["--device", "9", "power=1"], "mews telemetry: device '9': must be one of 000900, "),
        (["--device", "9"], "mews telemetry: --device 9: must be one of 000900, "),
        (["--what"], "mews telemetry: unrecognized arguments: --what\n"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(mews, words, complaint):
    code, out, err = mews(*words)
    assert (code, out) == (2, "")
    assert err.startswith(complaint)
    assert err.count("\n") == 1


def test_an_instance_that_does_not_run_is_bad_input(mews):
    code, out, err = mews("--name", "other")
    assert (code, out) == (2, "")
    assert err.startswith("--name other: no `mews up` of that name runs; running: ")
