"""Which files of a scenario's folder go with a program."""

import pytest

from mews.harness.clusters.real.replacement_files import LIMIT, ReplacementFiles, imported
from mews.harness.errors import RequirementError
from mews.harness.scenario.errors import ScenarioError


@pytest.fixture
def folder(tmp_path):
    for name, text in {
        "main.py": "import json, helper\nfrom package.deep import thing\n",
        "helper.py": "def late():\n    import other\n",
        "other.py": "from . import nothing\n",
        "package/__init__.py": "",
        "package/deep.py": "import bottom\n",
        "package/table.csv": "1",
        "package/.hidden": "1",
        "package/__pycache__/deep.pyc": "1",
        "bottom.py": "",
        "secret.txt": "1",
        "run.sh": "echo",
        "conf/a.yaml": "1",
        "conf/b.yaml": "2",
    }.items():
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "here"


def collected(folder, *argv, files=()):
    found = ReplacementFiles(folder, "stack.replace.scheduler.process")
    found.argv(argv)
    found.patterns(files)
    return set(found.files)


def test_a_script_goes_with_all_that_it_imports_from_the_folder_and_nothing_else(folder):
    assert collected(folder, "{python}", "-u", "main.py") == {
        "main.py", "helper.py", "other.py", "package/__init__.py", "package/deep.py", "package/table.csv", "bottom.py",
    }  # fmt: skip


def test_a_module_is_found_as_python_finds_it(folder):
    assert collected(folder, "{python}", "-m", "package.deep") >= {"package/deep.py", "bottom.py"}
    assert collected(folder, "{python}", "-m", "mews.systems.kubecomp") == set()
    assert collected(folder, "{python}", "-c", "import bottom; bottom.go()") == {"bottom.py"}


@pytest.mark.parametrize(
    "argv",
    [
        ["./run.sh", "conf/a.yaml"],
        ["./run.sh", "--config=conf/a.yaml"],
        ["./run.sh", "PATHS=/etc:conf/a.yaml"],
        ["./run.sh", "./conf/../conf/a.yaml"],
    ],
)
def test_files_that_words_name_are_carried(folder, argv):
    assert collected(folder, *argv) == {"run.sh", "conf/a.yaml"}


def test_a_folder_that_a_word_names_is_carried_whole_and_patterns_add_more(folder):
    assert collected(folder, "sh", "conf") == {"conf/a.yaml", "conf/b.yaml"}
    assert collected(folder, "sh", files=["secret.txt", "conf/*"]) == {"secret.txt", "conf/a.yaml", "conf/b.yaml"}


@pytest.mark.parametrize(
    ("argv", "files"),
    [(["sh", "away.txt"], []), (["sh", "conf"], []), (["sh"], ["*.txt"]), (["{python}", "far.py"], [])],
)
def test_a_link_that_leads_out_of_the_folder_is_carried_only_when_the_user_says_so(folder, argv, files):
    for name in ("away.txt", "conf/away.txt", "far.py"):
        (folder.parent / "foreign").write_text("bytes")
        (folder / name).symlink_to(folder.parent / "foreign")
    with pytest.raises(ScenarioError, match="a link that leads out of the scenario's folder; must be") as raised:
        collected(folder, *argv, files=files)
    assert "bytes" not in str(raised.value)
    found = ReplacementFiles(folder, "stack.replace.scheduler.process", follow=True)
    found.argv(argv)
    found.patterns(files)
    assert b"bytes" in found.files.values()


def test_words_that_can_be_no_file_are_passed_over(folder):
    assert collected(folder, "sh", "x" * 5000, "\0", "/etc/passwd", ".", "..", "", "--a=", "a:b:c") == set()


@pytest.mark.parametrize("argv", [["{python}", "nowhere.py"], ["python3.11", "-X", "dev", "nowhere.py"], ["./no.sh"]])
def test_a_program_that_is_not_there_is_told_in_one_line(folder, argv):
    with pytest.raises(ScenarioError, match=r"^stack.replace.scheduler.process: '.*': no such file \(.*\)$"):
        collected(folder, *argv)


def test_a_pattern_that_matches_nothing_is_told(folder):
    with pytest.raises(ScenarioError, match=r"process.files: 'x/\*': no such file"):
        collected(folder, "sh", files=["x/*"])
    with pytest.raises(ScenarioError, match="must be a pattern below"):
        collected(folder, "sh", files=["../*"])


def test_what_lies_outside_cannot_be_carried(folder):
    (folder.parent / "outside.py").write_text("")
    with pytest.raises(RequirementError, match=r"outside\.py: is outside the scenario's folder"):
        collected(folder, "{python}", "../outside.py")


def test_more_than_a_config_map_takes_is_told_with_the_largest_file(folder):
    (folder / "big.bin").write_bytes(b"0" * LIMIT)
    assert collected(folder, "sh", "big.bin") == {"big.bin"}
    with pytest.raises(RequirementError, match=rf"have {LIMIT + 1} bytes .largest: big.bin.; .*build an image"):
        collected(folder, "sh", "big.bin", "conf/a.yaml")


def test_imports_are_read_without_running_anything():
    assert imported(b"import a.b, c as d\nfrom e.f import g\nfrom . import h\nraise SystemExit\n") == (
        "a.b",
        "c",
        "e.f",
    )
    assert imported(b"not python (") == ()
