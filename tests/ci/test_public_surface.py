"""What users rely on changes with a line in the CHANGELOG, or not at all."""

import pytest

from ci import public_surface as public

LOG = "# Changelog\n\n## Unreleased\n\n### Removed\n- {text}\n\n## 0.2.0\n- `--old` is there.\n"


def record(*items: str, made_with: str = "nothing yet") -> str:
    section = public.unreleased(LOG.format(text=made_with))
    return "\n".join([f"# {public.digest_of(section)}", *items])


@pytest.fixture
def three(monkeypatch):
    items = ["option mews run: --new", "option mews run: --seed <int>", "scenario file: steps"]
    monkeypatch.setattr(public, "surface", lambda: items)
    return items


def test_the_record_is_what_users_have_today():
    recorded = public.RECORD.read_text(encoding="utf-8")
    assert public.difference(recorded, public.CHANGELOG.read_text(encoding="utf-8")) == ""


def test_it_has_all_that_is_promised():
    kinds = {" ".join(item.split()[:2]).rstrip(",:") for item in public.surface()}
    assert {"option mews", "command mews", "exit code", "scenario file", "hardware file", "pytest option"} <= kinds
    assert {"ini option", "journal chassis", "journal kubelet", "entry-point group", "system kubecomp"} <= kinds
    assert "fixture mews_cluster" in public.surface()
    assert any(item.startswith("mews.testing.cluster(") for item in public.surface())


def test_what_is_new_needs_a_line_and_then_the_record(three):
    before = record(*three[1:], made_with="nothing yet")
    same = public.difference(before, LOG.format(text="nothing yet"))
    assert same.startswith("+ option mews run: --new\nCHANGELOG.md, Unreleased: says nothing new")
    described = public.difference(before, LOG.format(text="`--new` is new"))
    assert "Unreleased" not in described
    assert described.endswith("python -m ci.public_surface --write")


@pytest.mark.parametrize(
    ("item", "word"),
    [
        ("option mews run: --old", "--old"),
        ("option mews run: -o, --old <int>", "--old"),
        ("scenario file, Step: chassis.*.old (required)", "old"),
        ("scenario file, Step: kind: 'old'", "old"),
        ("command mews old", "old"),
        ("mews.testing.old(path)", "mews.testing.old"),
        ("journal chassis old: device", "device"),
        ("fixture mews_old", "mews_old"),
    ],
)
def test_what_goes_is_named_where_the_next_release_says_it(three, item, word):
    before = record(*three, item)
    found = public.difference(before, LOG.format(text="another thing is gone, and old options, too"))
    assert found == f"- {item}\nCHANGELOG.md, Unreleased: does not name `{word}`"
    assert "does not name" not in public.difference(before, LOG.format(text=f"`{word}` is gone"))


def test_nothing_is_wrong_where_nothing_changed(three):
    assert public.difference(record(*three), LOG.format(text="whatever")) == ""
