"""Definitions that others publish in Go modules: all are taken, and one object of each makes the round trip.

The modules and their checksums are in ``published_modules.txt``; Go downloads them where it is installed.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews.kube.api.errors import ApiError, InvalidError
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.objects.deletion import delete
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.views import view_of

Body = dict[str, Any]

_PINS = Path(__file__).with_name("published_modules.txt")
_FEWEST = 60
_DOWNLOAD_S = 300
_TEMPLATED = re.compile(r"\{\{.*?\}\}")


def _module(path: str, version: str, checksum: str, folder: Path) -> Path:
    """The folder of a module that has that checksum; the test is skipped where it cannot be had."""
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"{path}@{version}"],
        capture_output=True, text=True, timeout=_DOWNLOAD_S, cwd=folder, env=environment, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(
            f"{path}@{version} cannot be downloaded: {done.stdout.strip()[-200:] or done.stderr.strip()[-200:]}"
        )
    found = json.loads(done.stdout)
    assert found["Sum"] == checksum
    return Path(found["Dir"])


_SERVED = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
"""Definitions in v1beta1, which 1.22 took away, are refused by the real server, too."""


def _definitions(folder: Path) -> Iterator[Body]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for path in sorted({*folder.rglob("*.yaml"), *folder.rglob("*.yml")}):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "CustomResourceDefinition" not in text or "openAPIV3Schema" not in text:
            continue
        try:
            documents = list(yaml.load_all(text, loader))
        except yaml.YAMLError:  # a template of a chart
            continue
        for one in documents:
            if isinstance(one, dict) and (one.get("apiVersion"), one.get("kind")) == _SERVED:
                yield json.loads(json.dumps(one, default=str))


def _thing(schema: Body, name: str = "") -> Any:
    """The least that a schema takes: what is required, and defaults."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            properties = schema.get("properties") or {}
            return {key: _thing(properties[key], key) for key in schema.get("required") or () if key in properties}
        case "array":
            return [_thing(schema["items"])] * (schema.get("minItems") or 0)
        case "integer" | "number":
            return schema.get("minimum") or 1
        case "boolean":
            return False
    return "x" * max(schema.get("minLength") or 1, 1)


@pytest.mark.wall
def test_published_definitions_are_taken_and_their_objects_make_the_round_trip(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    pins = [line.split() for line in _PINS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    taken, objects, refused = 0, 0, []
    for path, version, checksum in pins:
        store = fresh_store(lambda: 0.0, random.Random(1))
        for definition in _definitions(_module(path, version, checksum, tmp_path)):
            labels = definition["metadata"].get("labels") or {}
            definition["metadata"]["labels"] = {k: v for k, v in labels.items() if not _TEMPLATED.search(str(v))}
            try:
                objects += _round_trip(store, definition)
            except ApiError as error:
                refused.append(f"{path}: {definition['metadata']['name']}: {error}")
            else:
                taken += 1
    assert not refused, "\n".join(refused)[:4000]
    assert taken > _FEWEST
    assert objects > taken / 2


def _round_trip(store: Store, definition: Body) -> int:
    """How many objects (0 or 1) of a definition were made, read and found to be the same."""
    kinds = store.kinds
    definitions = kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert definitions is not None
    made = create(store, definitions, "", definition)
    spec, name = made["spec"], made["metadata"]["name"]
    version = next(one for one in spec["versions"] if one["storage"] and one["served"])
    kind = kinds.find(spec["group"], version["name"], spec["names"]["plural"])
    assert kind is not None
    body = {**_thing(version["schema"]["openAPIV3Schema"]), "metadata": {"name": "one"}}
    body |= {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
    try:
        stored = create(store, kind, "default" if kind.resource.namespaced else "", body)
    except InvalidError:  # a rule or a pattern asks for more than the least
        return 0
    finally:
        if not store.list(kind).items:
            delete(store, definitions, "", name)
    found = store.get(kind, stored["metadata"].get("namespace", ""), "one")
    assert found == stored
    assert found["metadata"]["generation"] == 1
    assert view_of(kind).show(found) == found
    delete(store, definitions, "", name)
    return 1
