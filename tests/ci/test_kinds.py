"""The core of the embedded API server names no kind but where the API itself does."""

from ci import internal_types, release_data, wire_numbers
from ci.kinds import ROOT, kind_names, named_in
from mews.kube.releases.release_data import names

OF_THE_API = {
    ("core/checks/affinity_errors.py", "namespaces"),  # a field of a pod's affinity
    ("core/store/metadata_errors.py", "Event"),  # no owner (apimachinery pkg/api/validation/objectmeta.go)
    ("core/wire/routes.py", "namespaces"),  # a part of every path
}


def test_the_core_names_no_kind(tmp_path):
    known = kind_names()
    core = sorted((ROOT / "core").rglob("*.py"))
    assert len(core) > 40
    found = {(str(path.relative_to(ROOT)), name) for path in core for name in named_in(path, known)}
    assert found == OF_THE_API


def test_a_kind_is_seen_as_a_text_and_as_a_constant_but_not_in_prose(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""pods"""\nfrom mews.kube.api.resources import NODES, Resource\nX = ("pods", "pod")\n')
    assert sorted(named_in(path, kind_names())) == ["NODES", "pods"]


def test_tools_that_make_data_write_it_where_it_is_read():
    assert internal_types.FILE.is_file()
    assert wire_numbers.OUT.is_file()
    assert all((release_data.OUT / name / "kinds.json").is_file() for name in names())
