from typing import Any

from mews.kube.api.objects import key_of, micro_timestamp, seconds, timestamp
from mews.kube.api.pod_requests import request_of

GPU = "falcon.com/gpu"


def container(gpus: int, **extra: Any) -> dict[str, Any]:
    return {"resources": {"limits": {GPU: gpus}}, **extra}


def pod(*containers: dict[str, Any], init: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"containers": list(containers), "initContainers": init},
    }


def test_a_pods_request_is_the_sum_over_all_its_containers() -> None:
    assert request_of(pod(container(1), container(2)), GPU) == 3


def test_an_init_container_counts_only_where_it_asks_for_more() -> None:
    assert request_of(pod(container(2), init=[container(1)]), GPU) == 2
    assert request_of(pod(container(1), init=[container(4)]), GPU) == 4


def test_a_sidecar_runs_beside_the_mains_and_the_later_inits() -> None:
    sidecar = container(1, restartPolicy="Always")
    assert request_of(pod(container(2), init=[sidecar]), GPU) == 3
    assert request_of(pod(container(1), init=[sidecar, container(4)]), GPU) == 5


def test_keys_name_the_namespace_where_there_is_one() -> None:
    assert key_of(pod()) == "n/a"
    assert key_of({"metadata": {"name": "node"}}) == "node"


def test_times_survive_the_wire() -> None:
    assert timestamp(1_767_225_600.9) == "2026-01-01T00:00:00Z"
    assert micro_timestamp(1_767_225_600.25) == "2026-01-01T00:00:00.250000Z"
    assert seconds("2026-01-01T00:00:00.250000Z") == 1_767_225_600.25
