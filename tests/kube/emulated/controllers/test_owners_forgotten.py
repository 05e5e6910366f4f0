"""What the garbage collector remembers of owners."""

from __future__ import annotations

import logging
import random
from typing import Any

from mews.kube.api.resources import PODS
from mews.kube.clock import Clock, Pace
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.garbage import GarbageCollector
from mews.kube.emulated.controllers.owners import Informers


def owned(name: str, *owners: str) -> dict[str, Any]:
    references = [{"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": uid, "uid": uid} for uid in owners]
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"metadata": {**metadata, "ownerReferences": references}}


def test_an_owner_without_dependents_is_forgotten() -> None:
    kube = InProcessKube(fresh_store(lambda: 0.0, random.Random(1)))
    context = Context(kube, Clock(0.0), random.Random(1), logging.getLogger("test"))
    collector = GarbageCollector(context, Pace(1.0), informers=Informers(kube))
    first, second = owned("a", "owner"), owned("b", "owner", "other")
    collector._on_change(PODS, None, first)
    collector._on_change(PODS, None, second)
    assert {owner: list(held) for owner, held in collector._dependents.items()} == {
        "owner": ["uid-a", "uid-b"],
        "other": ["uid-b"],
    }
    collector._on_change(PODS, second, owned("b", "owner"))
    assert list(collector._dependents) == ["owner"]
    collector._on_change(PODS, first, None)
    collector._on_change(PODS, owned("b", "owner"), None)
    assert not collector._dependents
