"""What we write in YAML is read alike by readers of YAML 1.1 and 1.2: 000800 and 000E00 are texts to both."""

import json
import re
from pathlib import Path

import pytest
import yaml

from mews.emulator.fixture_tool import FixturePlan, make, render
from mews.harness.cli import exit_code
from mews.harness.commands.manifests import ManifestsOptions, files_of, stack_objects
from mews.harness.live.scenario_file import as_yaml as session_yaml
from mews.harness.manifests.stack import as_yaml as manifests_yaml
from mews.harness.scenario.reading import evidence_text
from mews.yaml_text import written_yaml, written_yaml_documents

ROOT = Path(__file__).resolve().parent.parent
HARD = (
    *("000800", "000E00", "0x1F", "0o17", "017", "1_000", "1:30", "1e3", ".5", "-1", "+2", "12e03", "0b1", "1.", "0."),
    *("yes", "NO", "on", "y", "~", "null", "True", "2026-11-24", "2026-11-24T15:31:28Z", ".inf", ".NaN", "", "=", "<<"),
)


class Core(yaml.SafeLoader):
    """A reader of YAML 1.2's core schema (section 10.3.2)."""

    yaml_implicit_resolvers: dict[str, list[object]] = {}  # noqa: RUF012


for _tag, _pattern in (
    ("null", r"null|Null|NULL|~|"),
    ("bool", r"true|True|TRUE|false|False|FALSE"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
):
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), None)


def core_int(loader, node):
    return int(node.value, 0 if node.value[:2] in ("0o", "0x") else 10)


def core_float(loader, node):
    return float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))


Core.add_constructor("tag:yaml.org,2002:int", core_int)
Core.add_constructor("tag:yaml.org,2002:float", core_float)


def shape(value):
    """With types, so that 1 and true and "1" differ; a date is one of YAML 1.1 alone."""
    if isinstance(value, dict):
        return {repr(key): shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return type(value).__name__, repr(value)


def read_alike(text):
    """The documents, which both readers see alike."""
    old, new = list(yaml.load_all(text, Loader=yaml.SafeLoader)), list(yaml.load_all(text, Loader=Core))
    assert shape(new) == shape(old)
    for document in new:
        for text_inside in inner_texts(document):
            read_alike(text_inside)
    return new


def inner_texts(value, key=""):
    """Files in ConfigMaps."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from inner_texts(each, str(name))
    elif isinstance(value, str) and key.endswith(".yaml"):
        yield value


def test_the_two_readers_differ_where_nothing_is_quoted():
    """Otherwise the tests below could not fail."""
    plain = yaml.safe_dump({"id": "000800", "other": "000E00"})
    assert plain == "id: 000800\nother: 000E00\n"
    with pytest.raises(AssertionError):
        read_alike(plain)


@pytest.mark.parametrize("text", HARD)
def test_a_text_that_looks_like_something_else_stays_one(text):
    value = {"key": text, text: [text]}
    assert read_alike(written_yaml(value)) == [value]
    assert read_alike(written_yaml(value, flow=None)) == [value]
    assert read_alike(written_yaml_documents([value, value])) == [value, value]


def hardware():
    plan = FixturePlan(hosts=2, gpus=16, free=1)
    return make(plan)


def written_by_fixture_tool(tmp_path):
    return render(hardware())


def written_by_a_session(tmp_path):
    steps = [{"chassis": {"edit": {"chassis": "A", "device": "000800", "port": "1"}}}]
    return session_yaml({"hardware": hardware(), "steps": steps}, "a session")


def written_for_people(tmp_path):
    return evidence_text({"device": "000E00", "port": "1"})


def written_as_manifests(tmp_path):
    (tmp_path / "hardware.yaml").write_text(render(hardware()))
    options = ManifestsOptions(tmp_path / "hardware.yaml", None, None, None, "image:1", (), None)
    objects = stack_objects(options)
    return manifests_yaml(objects) + "".join(f"---\n{text}" for text in files_of(objects).values())


def written_by_record(tmp_path):
    lines = [{"Dev_GID": "000800", "Host_Port#": "1"}, {"Dev_GID": "000E00", "Host_Port#": ""}, {"Port#": "1"}]
    (tmp_path / "seen").mkdir()
    (tmp_path / "seen" / "listing.json").write_text(json.dumps(lines))
    assert exit_code(["record", "--from", str(tmp_path / "seen"), "--out", str(tmp_path / "bug.yaml")]) == 0
    return "---\n".join((tmp_path / name).read_text() for name in ("bug.yaml", "bug-hardware.yaml"))


def written_by_new(tmp_path):
    for kind in ("scenario", "dialect", "fault", "system"):
        assert exit_code(["new", kind, str(tmp_path / f"my-{kind}")]) == 0
    return "".join(f"---\n{path.read_text()}" for path in sorted(tmp_path.rglob("*.yaml")))


WRITERS = [
    *(written_by_fixture_tool, written_by_a_session, written_for_people, written_as_manifests),
    *(written_by_record, written_by_new),
]


@pytest.mark.parametrize("writer", WRITERS, ids=[writer.__name__ for writer in WRITERS])
def test_what_is_written_is_read_alike(writer, tmp_path):
    text = writer(tmp_path)
    assert read_alike(text)
    assert re.search(r"(?<![\"'0-9A-Za-z-])000[0-9A-F]00(?![\"'0-9A-Za-z])", text) is None


def test_every_hardware_file_that_comes_with_the_package_is_read_alike():
    paths = sorted((ROOT / "fixtures" / "hardware").glob("*.yaml"))
    assert len(paths) > 8
    for path in paths:
        read_alike(path.read_text())


def test_nothing_writes_yaml_in_another_way():
    """The API server's answers are in the form of upstream's writer (kube/emulated/core/wire)."""
    found = [
        str(path.relative_to(ROOT))
        for top in ("emulator", "harness", "kube", "systems", "src")
        for path in sorted((ROOT / top).rglob("*.py"))
        if re.search(r"\byaml\.(safe_)?dump(_all)?\(", path.read_text())
    ]
    assert found == ["kube/emulated/core/wire/negotiation.py", "src/mews/yaml_text.py"]
