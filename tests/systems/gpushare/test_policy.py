from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mews.kube.system.nvml import ListedGpu
from mews.systems.gpushare.errors import GpuShareConfigError
from mews.systems.gpushare.policy import GpuUse, SharedGpu, best_fit, free_memory, largest_free, refusal, used_memory
from mews.systems.gpushare.slices import LIST_LIMIT, choose_unit, gpu_of_slice, list_bytes, slice_id, slices

GPU = 16276


def gpus(*sizes: int) -> list[SharedGpu]:
    return [SharedGpu(index, f"GPU-{index}", size) for index, size in enumerate(sizes)]


def test_of_12207_8138_4069_and_16276_free_a_request_for_8138_takes_the_second() -> None:
    there = gpus(GPU, GPU, GPU, GPU)
    used = [GpuUse("p", 0, "", 4069), GpuUse("q", 1, "", 8138), GpuUse("r", 2, "", 12207)]
    free = free_memory(there, used_memory(there, used))
    assert list(free.values()) == [12207, 8138, 4069, 16276]
    assert best_fit(8138, there, free) == there[1]


def test_the_three_nodes_of_the_design_are_judged_as_it_says() -> None:
    there = gpus(GPU, GPU)
    spread = [GpuUse("a", 0, "", 12207), GpuUse("b", 1, "", 12207)]
    together = [GpuUse("a", 1, "", 16276), GpuUse("b", 0, "", 8138)]
    assert refusal("n2", 8138, largest_free(there, spread)) == "Insufficient GPU Memory in one device"
    assert refusal("n3", 8138, largest_free(there, together)) == ""
    assert refusal("n9", 8138, largest_free([], [])) == "The node n9 is not for GPU share, need skip"


def test_of_equal_gpus_the_one_with_the_lowest_index_is_taken() -> None:
    there = gpus(10, 10)
    assert best_fit(3, there, {"GPU-0": 5, "GPU-1": 5}) == there[0]


def test_a_use_goes_by_uuid_whatever_its_index_was() -> None:
    there = gpus(10, 10)
    assert used_memory(there, [GpuUse("p", 0, "GPU-1", 4)]) == {"GPU-0": 0, "GPU-1": 4}
    assert used_memory(there, [GpuUse("p", 0, "GPU-gone", 4)]) == {"GPU-0": 0, "GPU-1": 0}


def test_a_broken_gpu_has_nothing_to_give_and_an_overfull_one_not_less_than_nothing() -> None:
    there = [SharedGpu(0, "a", 10, usable=False), SharedGpu(1, "b", 10)]
    free = free_memory(there, {"a": 0, "b": 15})
    assert free == {"a": 0, "b": 0}
    assert best_fit(1, there, free) is None


@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=5), requests=st.lists(st.integers(1, 20), max_size=30))
def test_what_is_chosen_again_and_again_never_exceeds_any_gpu(sizes: list[int], requests: list[int]) -> None:
    there, uses = gpus(*sizes), list[GpuUse]()
    for number, request in enumerate(requests):
        free = free_memory(there, used_memory(there, uses))
        chosen = best_fit(request, there, free)
        assert (chosen is None) == (max(free.values()) < request)
        if chosen is not None:
            uses.append(GpuUse(str(number), chosen.index, chosen.uuid, request))
    assert all(used <= size for used, size in zip(used_memory(there, uses).values(), sizes, strict=True))


UUID = "GPU-16a0c321-0000-0000-0000-{:012d}"


def listed(count: int, memory_mib: int) -> list[ListedGpu]:
    return [ListedGpu(n, UUID.format(n), f"0000:{n:02x}:00.0", n, memory_mib) for n in range(count)]


@pytest.mark.parametrize(
    ("count", "memory_mib", "unit"), [(2, 16276, "MiB"), (4, 16276, "MiB"), (1, 81559, "256MiB"), (8, 143771, "256MiB")]
)
def test_auto_is_the_finest_unit_whose_list_a_kubelet_takes(count: int, memory_mib: int, unit: str) -> None:
    assert choose_unit("auto", listed(count, memory_mib)) == unit


def test_the_length_of_a_list_is_that_of_its_message() -> None:
    messages = pytest.importorskip("mews.kube.deviceplugin.messages")
    shared = [SharedGpu(0, UUID.format(0), 1200, usable=False), SharedGpu(1, UUID.format(1), 7, usable=False)]
    message = messages.list_message([each for gpu in shared for each in slices(gpu)])
    assert list_bytes((gpu.uuid, gpu.memory) for gpu in shared) == message.ByteSize()


def test_a_unit_whose_list_is_too_long_is_refused_in_one_line() -> None:
    with pytest.raises(GpuShareConfigError) as refused:
        choose_unit("MiB", listed(1, 81559))
    assert "\n" not in str(refused.value)
    assert "must be 256MiB or GiB or auto" in str(refused.value)
    assert str(LIST_LIMIT) in str(refused.value)


def test_a_slice_names_its_gpu_and_others_devices_name_none() -> None:
    assert gpu_of_slice(slice_id("GPU-a-_-b", 12)) == "GPU-a-_-b"
    assert gpu_of_slice("GPU-a") == ""
