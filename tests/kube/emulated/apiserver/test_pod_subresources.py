"""What the subresources of a pod that write its spec may change: the rest stays as it was."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mews.kube.api.errors import InvalidError
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects import creation, update
from mews.kube.emulated.core.store.request import WriteRequest

_CONTAINER = {
    "name": "c",
    "image": "x",
    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1Gi"}},
}


class PodBench:
    """One pod in a store."""

    def __init__(self) -> None:
        self._store = fresh_store(lambda: 1_700_000_000.0, random.Random(1))
        kind = self._store.kinds.find("", "v1", "pods")
        assert kind is not None
        self._kind = kind
        body = {"metadata": {"name": "p"}, "spec": {"containers": [_CONTAINER]}}
        creation.create(self._store, kind, "default", body, WriteRequest())

    def change(self, subresource: str, spec: dict[str, Any]) -> Any:
        pod = self._store.get(self._kind, "default", "p")
        body = {**pod, "spec": {**pod["spec"], **spec}}
        return update.replace(self._store, self._kind, "default", "p", body, subresource=subresource)


def test_ephemeral_containers_are_added_and_nothing_else_changes() -> None:
    bench = PodBench()
    added = {"ephemeralContainers": [{"name": "d", "image": "y"}], "containers": [{**_CONTAINER, "image": "z"}]}
    spec = bench.change("ephemeralcontainers", added)["spec"]
    assert [each["name"] for each in spec["ephemeralContainers"]] == ["d"]
    assert spec["containers"][0]["image"] == "x"


@pytest.mark.parametrize(
    ("given", "text"),
    [([], "may not be removed"), ([{"name": "d", "image": "other"}], "may not be changed")],
)
def test_ephemeral_containers_stay_as_they_are(given: list[dict[str, str]], text: str) -> None:
    bench = PodBench()
    bench.change("ephemeralcontainers", {"ephemeralContainers": [{"name": "d", "image": "y"}]})
    with pytest.raises(InvalidError, match=f'existing ephemeral containers "d" {text}'):
        bench.change("ephemeralcontainers", {"ephemeralContainers": given})


def test_a_resize_changes_cpu_and_memory_alone() -> None:
    bench = PodBench()
    more = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    spec = bench.change("resize", {"containers": [{**_CONTAINER, "image": "z", "resources": more}]})["spec"]
    assert (spec["containers"][0]["image"], spec["containers"][0]["resources"]["limits"]["cpu"]) == ("x", "2")
    other = {**more, "limits": {**more["limits"], "example.com/a": "1"}}
    with pytest.raises(InvalidError, match="only cpu and memory resources are mutable"):
        bench.change("resize", {"containers": [{**_CONTAINER, "resources": other}]})


def test_a_plain_update_adds_no_ephemeral_containers() -> None:
    with pytest.raises(InvalidError, match="pod updates may not change fields other than"):
        PodBench().change("", {"ephemeralContainers": [{"name": "d", "image": "y"}]})
