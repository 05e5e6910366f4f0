"""The rules of MIG: profiles, where instances are placed, what is refused."""

import re

import pytest

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.nvml.mig.instances import (
    NO_MIG,
    InstanceInUseError,
    MigState,
    NoInstanceError,
    NoRoomError,
    UnknownProfileError,
    compute_created,
    compute_destroyed,
    created,
    destroyed,
    mig_uuid,
    remaining,
    room_for,
)
from mews.emulator.nvml.mig.lines import gpu_lines
from mews.emulator.nvml.mig.models import MIG_TABLES, mig_table
from mews.emulator.nvml.mig.table import compute_profiles

H100, A30 = MIG_TABLES["NVIDIA H100 80GB HBM3"], MIG_TABLES["NVIDIA A30"]
GPU = "GPU-00000000-0000-4000-8000-000000000001"


def made(table, *profiles):
    """The state after creating GPU instances of these profile IDs."""
    state = MigState(enabled=True, pending=True)
    for profile in profiles:
        state = created(state, table, profile)
    return state


def places(state):
    return [(each.id, each.start, each.size) for each in state.instances]


@pytest.mark.parametrize("model", [name for name, profile in PROFILES.items() if profile.mig_capable])
def test_every_model_with_mig_has_a_table_whose_profiles_fit_it(model):
    profile = PROFILES[model]
    table = mig_table(profile)
    assert len({each.id for each in table.profiles}) == len({each.number for each in table.profiles})
    assert len({each.name for each in table.profiles}) == len(table.profiles)
    for each in table.profiles:
        assert each.memory_mib <= profile.memory_mib and each.multiprocessors * 64 <= profile.cores
        assert max(each.starts) + each.size <= table.units
        slices, memory = re.match(r"(\d)g\.(\d+)gb", each.name).groups()
        assert int(slices) == each.slices
        assert abs(int(memory) - each.memory_mib / 1024) <= max(2.5, int(memory) * 0.02)
        assert remaining(NO_MIG, table, each) == each.count
        assert [one.slices for one in compute_profiles(table, each)][-1] == each.slices


def test_a_model_without_mig_has_none():
    assert mig_table(PROFILES["T4"]) is None


@pytest.mark.parametrize(("profiles", "expected"), [
    # nvidia-smi mig -lgi of an H100 (570.169): seven smallest, created in this order
    ([19] * 7, [(9, 6, 1), (7, 4, 1), (8, 5, 1), (11, 0, 1), (12, 1, 1), (13, 2, 1), (14, 3, 1)]),
    # the MIG User Guide's geometries 4-2-1, 3-1-2-1 and 2-1-1-1-1-1, with IDs as newer drivers give them
    ([5, 14, 19], [(2, 0, 4), (3, 4, 2), (9, 6, 1)]),
    ([9, 19, 14, 19], [(1, 4, 4), (11, 0, 1), (6, 2, 2), (12, 1, 1)]),
    ([14, 19, 19, 19, 19, 19], [(3, 4, 2), (9, 6, 1), (11, 0, 1), (12, 1, 1), (13, 2, 1), (14, 3, 1)]),
    ([0], [(0, 0, 8)]),
])  # fmt: skip
def test_instances_are_placed_and_numbered_as_the_driver_does(profiles, expected):
    assert places(made(H100, *profiles)) == expected


def test_boards_with_four_slices_are_numbered_from_the_left():
    assert places(made(A30, 14, 14, 5)) == [(3, 0, 1), (4, 1, 1), (2, 2, 2)]


@pytest.mark.parametrize("profiles", [[19] * 8, [9, 9, 9], [0, 19], [19, 19, 14, 9], [20, 20], [15, 15, 15, 15, 15]])
def test_what_does_not_fit_is_refused(profiles):
    state = made(H100, *profiles[:-1])
    with pytest.raises(NoRoomError):
        created(state, H100, profiles[-1])


def test_room_is_told_of_each_profile():
    state = made(H100, 9, 19)
    assert {each.name: remaining(state, H100, each) for each in H100.profiles} == {
        "1g.10gb": 3, "1g.10gb+me": 1, "1g.20gb": 1, "2g.20gb": 1, "3g.40gb": 0, "4g.40gb": 0, "7g.80gb": 0,
    }  # fmt: skip
    assert room_for(state, H100, H100.by_id(14)) == (2,)


def test_a_placement_must_be_one_of_the_profiles_and_free():
    state = created(made(H100, 9), H100, 19, 3)
    assert places(state)[-1] == (14, 3, 1)
    for start, refusal in ((3, NoRoomError), (4, NoRoomError), (7, UnknownProfileError)):
        with pytest.raises(refusal):
            created(state, H100, 19, start)
    with pytest.raises(UnknownProfileError):
        created(state, H100, 77)


def test_compute_instances_share_a_gpu_instance():
    state = made(H100, 9)
    for profile in (0, 1):
        state = compute_created(state, H100, GPU, 1, profile)
    (instance,) = state.instances
    assert [(one.id, one.slices, one.start) for one in instance.compute] == [(0, 1, 2), (1, 2, 0)]
    with pytest.raises(NoRoomError):
        compute_created(state, H100, GPU, 1, 0)
    with pytest.raises(UnknownProfileError):
        compute_created(state, H100, GPU, 1, 4)
    with pytest.raises(NoInstanceError):
        compute_created(state, H100, GPU, 2, 0)
    with pytest.raises(InstanceInUseError):
        destroyed(state, 1)
    with pytest.raises(NoInstanceError):
        compute_destroyed(state, 1, 5)
    state = compute_destroyed(compute_destroyed(state, 1, 0), 1, 1)
    assert destroyed(state, 1).instances == ()
    with pytest.raises(NoInstanceError):
        destroyed(state, 2)


def test_a_uuid_is_of_version_5_and_stays_with_the_place():
    first = mig_uuid(GPU, 7, 0)
    assert re.fullmatch(r"MIG-[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", first)
    others = {mig_uuid(GPU, 7, 1), mig_uuid(GPU, 8, 0), mig_uuid(GPU[:-1] + "2", 7, 0)}
    assert first == mig_uuid(GPU, 7, 0) and first not in others and len(others) == 3


def test_an_instance_made_anew_has_another_serial_number():
    state = made(H100, 19)
    again = created(destroyed(state, 9), H100, 19)
    assert again.instances[0].id == state.instances[0].id
    assert again.instances[0].serial > state.instances[0].serial


def test_a_gpu_with_mig_off_costs_one_line():
    assert list(gpu_lines(NO_MIG, H100, 2)) == ["mig_model 2"]
    assert "mig_mode 1" in list(gpu_lines(made(H100, 19), H100, 2))
