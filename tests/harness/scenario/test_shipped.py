from pathlib import Path

import jsonschema
import pytest

import mews.scenarios
from mews.harness.scenario.loader import find_scenarios, load_scenario, schema
from mews.harness.scenario.yamlfile import read_yaml

FOLDER = Path(mews.scenarios.__file__).parent
SHIPPED = {str(path.relative_to(FOLDER)): path for path in find_scenarios([FOLDER])}
OF_KUBERNETES = (
    "controllers/",
    "dra/11",
    "dra/12",
    "dra/13",
    "dra/14",
    "dra/15",
    "dra/16",
    "dra/17",
    "dra/18",
    "dra/19",
    "dra/24",
    "fabric/",
    "mixed/03",
    "remediation/",
    "scheduling/",
)
"""Those in which objects of Kubernetes, and no devices, are what must come out."""
SCHEMA = jsonschema.Draft202012Validator(schema())


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_says_what_it_shows_and_is_valid(name):
    text = SHIPPED[name].read_text()
    first = text.splitlines()[0]
    assert first.startswith("# ")
    assert first.endswith(".")
    SCHEMA.validate(read_yaml(text, name).value)
    scenario = load_scenario(SHIPPED[name])
    assert scenario.metadata.description == first.removeprefix("# ")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_asserts_hard_facts_at_its_end(name):
    scenario = load_scenario(SHIPPED[name])
    facts = [check for step in scenario.steps for check in (*(step.wait or ()), *(step.assert_ or ()))]
    facts += [check for step in scenario.steps if step.hold for check in step.hold.check]
    told = {field for check in facts for field in check.model_fields_set}
    hard = {"moves", "operations", "hosts", "host", "telemetry"}
    if name.startswith(OF_KUBERNETES):
        hard |= {"object", "count"}
    assert scenario.metrics or told & hard


def test_the_names_that_scripts_rely_on_are_there():
    runs = [f"testbed/{w}-{s}.yaml" for w in ("w1", "w3") for s in ("pool", "4-4", "0-8")]
    assert {"demo.yaml", "testbed/w3-2-6.yaml", *runs} <= set(SHIPPED)
    assert len({load_scenario(path).name for path in SHIPPED.values()}) == len(SHIPPED) >= 18
