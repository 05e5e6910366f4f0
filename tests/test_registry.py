"""Values by name: ours, those of installed packages, and by module:attribute; one line for what is none."""

import subprocess
import sys

import pytest

from mews.registry import CannotLoadError, NotRegisteredError, ValueRegistry, is_reference, load, looking_in


def whole(name, value):
    if not isinstance(value, int):
        raise TypeError(f"is a {type(value).__name__}; must be an int")
    return value


@pytest.fixture
def numbers():
    return ValueRegistry("number", "mews.test-numbers", {"one": 1, "two": "math:inf"}, whole)


def install(folder, name="numbers"):
    """What an installed package leaves beside its modules."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mews.test-numbers]\nthree = their_numbers:THREE\ngone = not_there:X\n")
    (folder / "their_numbers.py").write_text("THREE = 3\n")


def test_ours_are_found_without_a_look_at_installed_packages(numbers, monkeypatch):
    monkeypatch.setattr("mews.registry.points", lambda group: pytest.fail("looked"))
    assert numbers.find("one") == 1


def test_an_installed_package_registers_a_name(numbers, tmp_path, monkeypatch):
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert numbers.find("three") == 3
    assert numbers.names() == ("one", "two", "gone", "three")


def test_one_look_at_the_installed_packages_serves_every_group(numbers, tmp_path, monkeypatch):
    import importlib.metadata

    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    looks, look = [], importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: (looks.append(1), look())[1])
    words = ValueRegistry("word", "mews.test-words", {}, str)
    assert (numbers.others(), words.others(), numbers.find("three")) == (("gone", "three"), (), 3)
    assert len(looks) == 1


def test_a_package_further_down_the_path_is_hidden_by_the_one_above(numbers, tmp_path, monkeypatch):
    for place in ("below", "above"):
        install(tmp_path / place)
        monkeypatch.syspath_prepend(str(tmp_path / place))
    below = tmp_path / "below" / "numbers-1.0.dist-info" / "entry_points.txt"
    below.write_text("[mews.test-numbers]\nfour = their_numbers:FOUR\n")
    assert numbers.others() == ("gone", "three")


def test_groups_of_others_are_none_of_ours():
    with pytest.raises(ValueError, match=r"group 'numbers': must begin with 'mews\.'"):
        ValueRegistry("number", "numbers", {}, whole)


def test_an_unknown_name_is_refused_in_one_line_that_lists_what_there_is(numbers, tmp_path, monkeypatch):
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(NotRegisteredError) as refused:
        numbers.find("four")
    assert str(refused.value) == "number 'four': must be one of one, two, gone, three, or module:attribute"


def test_a_value_of_another_type_is_refused_by_what_it_must_be(numbers):
    with pytest.raises(NotRegisteredError, match="number 'two': is a float; must be an int"):
        numbers.find("two")


def test_a_package_that_cannot_be_loaded_is_told_in_one_line(numbers, tmp_path, monkeypatch):
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(NotRegisteredError, match=r"number 'gone': not_there:X cannot be loaded: ModuleNotFoundError"):
        numbers.find("gone")


def test_a_module_of_the_scenarios_folder_comes_first(tmp_path):
    (tmp_path / "here_only.py").write_text("VALUE = 7\n")
    with looking_in(tmp_path):
        assert load("here_only:VALUE") == 7
    with pytest.raises(CannotLoadError):
        load("here_only_not:VALUE")


def test_two_folders_may_have_modules_of_one_name(tmp_path):
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "same_name.py").write_text(f"VALUE = {number}\n")
    seen = []
    for number in (1, 2, 1):
        with looking_in(tmp_path / str(number)):
            seen.append(load("same_name:VALUE"))
    assert seen == [1, 2, 1]


def test_what_goes_wrong_in_the_users_module_is_one_line(tmp_path):
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('two\\nlines')\n")
    with looking_in(tmp_path), pytest.raises(CannotLoadError) as error:
        load("broken_module:VALUE")
    assert str(error.value) == "broken_module:VALUE cannot be loaded: RuntimeError: two lines"


@pytest.mark.parametrize(
    ("text", "so"), [("a.b:c", True), ("a:b.c", True), ("a", False), ("a:", False), (":b", False), ("a b:c", False)]
)
def test_a_reference_is_a_module_and_an_attribute(text, so):
    assert is_reference(text) is so


def test_the_table_of_dialects_loads_no_part_of_any():
    code = "import mews.dialects, sys; print([m for m in sys.modules if m.startswith('mews.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(eval(done.stdout)) == ["mews.dialects", "mews.names", "mews.registry"]
