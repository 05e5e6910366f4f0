"""What systems bring together, and the names of theirs that a scenario may use."""

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import parse_scenario, schema
from mews.harness.systems import find_experiment, find_profile, find_program
from mews.kube.emulated.kubelet.images import load_images

HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: named}\nhardware: demo\n"


def parsed(text):
    return parse_scenario(HEAD + text, shipped("hardware", "demo").parent / "named.yaml")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("metrics: {moved_gpu: 0}\n", "metrics.moved_gpu: 'moved_gpu': must be one of moved_gpus, "),
        ("bounds: {progres_s: 5s}\n", "bounds.progres_s: 'progres_s': must be one of progress_s, "),
        ("stack: {profile: bench}\n", "stack.profile: 'bench': must be one of instant, "),
    ],
)
def test_a_name_that_neither_the_harness_nor_a_system_has_is_one_line(text, place):
    with pytest.raises(ScenarioError) as refused:
        parsed(text)
    assert place in str(refused.value)
    assert "\n" not in str(refused.value)


def test_names_of_systems_are_taken_as_those_of_the_harness():
    read = parsed(
        "metrics: {added_workers: 0, reconfigurations: 1}\nbounds: {progress_s: 5s}\nstack: {profile: testbed}\n"
    )
    assert set(read.metrics) == {"added_workers", "reconfigurations"}
    assert read.bounds == {"progress_s": 5.0}


def test_the_schema_lists_them():
    metrics, bounds = (schema()["properties"][name]["anyOf"][0] for name in ("metrics", "bounds"))  # the other: ${name}
    assert "added_workers" in metrics["propertyNames"]["enum"]
    assert "progress_s" in bounds["propertyNames"]["enum"]


def test_every_shipped_image_names_a_program_that_there_is():
    book = load_images()
    images = [book.find(name) for name in book.names()]
    named = [image.simulate.program for image in images if image.simulate is not None and image.simulate.program]
    assert [find_program(name) for name in named]


@pytest.mark.parametrize(
    ("find", "name", "text"),
    [
        (find_program, "nobody/it", "'nobody/it': no such system; systems: "),
        (find_program, "kod2/it", "'kod2/it': kod2 has no such program; it has training"),
        (find_profile, "bench", "profile 'bench': must be one of testbed"),
        (find_experiment, "none", "experiment 'none': must be one of koordinator-links, "),
        (find_experiment, "kubecomp-fig7", "experiment 'kubecomp-fig7': must be one of kubecomp-fig"),
    ],
)
def test_what_there_is_not_is_said_with_what_there_is(find, name, text):
    with pytest.raises(LookupError) as missing:
        find(name)
    assert text in missing.value.args[0]


def test_further_images_come_before_those_that_are_shipped():
    book = load_images(further={"mews/train": {"simulate": {"duration_s": 7}}, "toy/image": {"process": ["sh"]}})
    assert book.find("mews/train:1").simulate.duration_s == 7.0
    assert book.find("toy/image").process == ("sh",)
    assert book.find("busybox") is not None
