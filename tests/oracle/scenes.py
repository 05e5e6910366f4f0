"""Short scenes for the tests: a cluster of the demo's hardware, and what is done to it."""

from mews.harness.catalogue.files import shipped
from mews.harness.scenario.loader import parse_scenario
from tests.oracle.actions import Action
from tests.oracle.play import play


def scene(actions, length_s=60.0, tail_s=40.0, refused=0):
    """What a run with these actions came to; none of them, or so many, may be refused."""
    text = (
        "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: scene}\nhardware: demo\n"
        f"steps: [{{sleep: {length_s:g}}}]\n"
    )
    scenario = parse_scenario(text, shipped("hardware", "demo").parent / "scene.yaml")
    outcome = play(scenario, 1, lambda cluster: actions, tail_s=tail_s)
    assert outcome.refused == refused
    return outcome


def fault(after_s, **spec):
    return Action(0, after_s, "fault", "A", spec)


def edit(after_s, device, port):
    return Action(0, after_s, "edit", "A", {"device": device, "port": port})


def create(after_s, name, gpus, node=""):
    return Action(0, after_s, "create", name, {"gpus": gpus, "node": node})


def delete(after_s, name):
    return Action(0, after_s, "delete", name)


def kill(after_s, component, down_s):
    return Action(0, after_s, "kill", component, {"down_s": down_s})
