"""A kind of its own takes rows of data and one Python file: a copy of the package is given a made-up one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mews.harness.package import copy_to

GROUP = "scheduling.k8s.io"
ROWS: dict[str, dict[str, Any]] = {
    "kinds.json": {f"{GROUP}/v1": {"widgets": "Widget shortNames=wd sub=status:Widget:get,patch,update"}},
    "strategies.json": {f"{GROUP}/v1": {"widgets": "generation putCreates selectable=spec.color"}},
    "columns.json": {f"widgets.{GROUP}": ["Name: string name", "Color: string", "Age: string"]},
    "types/scheduling.json": {
        "v1.Widget": {
            "": f"kind={GROUP}/v1/Widget",
            "apiVersion": "string",
            "kind": "string",
            "metadata": "meta/v1.ObjectMeta keep",
            "spec": "scheduling/v1.WidgetSpec",
            "status": "scheduling/v1.WidgetStatus",
        },
        "v1.WidgetSpec": {"color": 'string ptr default="red"', "size": "int32"},
        "v1.WidgetStatus": {"ready": "bool"},
        "v1.WidgetList": {
            "": f"kind={GROUP}/v1/WidgetList",
            "apiVersion": "string",
            "items": "[]scheduling/v1.Widget req",
            "kind": "string",
            "metadata": "meta/v1.ListMeta keep",
        },
    },
}
"""What is added to the data of the first release; later ones are based on it."""
FILE = '''
"""Widgets."""

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, spec_of

RULES = Rules(
    validate=lambda widget: common.option("spec.color", widget["spec"]["color"], ("blue", "red")),
    printer=Printer(lambda widget, _: [spec_of(widget)["color"]], is_part=True),
)
'''
TRIED = """
import json, random, sys
import mews
from mews.kube.api.errors import InvalidError
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.objects.update import replace
from mews.kube.emulated.core.store.selection import select
from mews.kube.emulated.core.wire.discovery import resource_list
from mews.kube.emulated.core.wire.openapi import swagger
from mews.kube.emulated.core.wire.tables import table
from mews.kube.releases.cluster_release import cluster_release

store = fresh_store(lambda: 0.0, random.Random(1), release=cluster_release(sys.argv[1]))
kind = store.kinds.find("scheduling.k8s.io", "v1", "widgets")
made = create(store, kind, "default", {"metadata": {"name": "w"}, "spec": {"size": 3}, "status": {"ready": True}})
try:
    create(store, kind, "default", {"metadata": {"name": "x"}, "spec": {"color": "pink"}})
except InvalidError as error:
    refused = str(error)
changed = replace(store, kind, "default", "w", {**made, "spec": {"color": "blue", "size": 3}})
print(json.dumps({
    "from": mews.__file__,
    "made": made,
    "refused": refused,
    "generation": changed["metadata"]["generation"],
    "selected": len(store.list(kind, select(kind, namespace="default", fields="spec.color=blue")).items),
    "row": table(kind, [changed], store.rules(kind).printer, now_s=60.0, metadata={})["rows"][0]["cells"],
    "discovered": [each["name"] for each in resource_list(store.kinds, ("scheduling.k8s.io", "v1"))["resources"]],
    "defined": "io.k8s.api.scheduling.v1.Widget" in swagger(store.kinds)["definitions"],
}))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package that has the kind, too."""
    folder = tmp_path_factory.mktemp("made-up")
    copy_to(folder / "mews")
    for name, rows in ROWS.items():
        path = folder / "mews" / "kube" / "releases" / "1.34" / name
        table = json.loads(path.read_text())
        for key, row in rows.items():
            table[key] = row if name != "kinds.json" and name != "strategies.json" else {**table[key], **row}
        path.write_text(json.dumps(table))
    kinds = folder / "mews" / "kube" / "emulated" / "kinds"
    (kinds / "widgets.py").write_text(FILE)
    registry = (kinds / "registry.py").read_text()
    line = f'    "widgets.{GROUP}": "kinds.widgets:RULES",\n'
    place = f'    "priorityclasses.{GROUP}"'
    assert registry.count(place) == 1
    (kinds / "registry.py").write_text(registry.replace(place, line + place))
    return folder


@pytest.mark.parametrize("release", ["1.34", "1.37"])
def test_a_made_up_kind_takes_data_and_one_file(site: Path, release: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRIED, release],
        env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, cwd=site,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert Path(told["from"]).is_relative_to(site)
    assert told["made"]["spec"] == {"color": "red", "size": 3}
    assert "status" not in told["made"], "it has a status, which nobody gives it at its creation"
    assert told["refused"].endswith('spec.color: Unsupported value: "pink": supported values: "blue", "red"')
    assert (told["generation"], told["selected"], told["row"]) == (2, 1, ["w", "blue", "60s"])
    assert {"widgets", "widgets/status"} <= set(told["discovered"])
    assert told["defined"]
