"""MIG of NVIDIA's RTX PRO boards and of the B300: other fractions, counted media engines, graphics."""

import ast

import pytest

from mews.emulator.hardware.gpu_profiles import profile_of
from mews.emulator.nvml.mig.instances import MigState, NoRoomError, UnknownProfileError, created, remaining
from mews.emulator.nvml.mig.models import mig_table
from tests.emulator.nvml.mig_host import MigHost
from tests.emulator.nvml.test_mig import User

SIX, FIVE, FOUR = (mig_table(profile_of(f"RTX PRO {number}")) for number in (6000, 5000, 4500))
LISTED = """\
|   0  MIG 1g.24gb         14     4/4        23.62      No     46     1     1   |
|                                                               1     1     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 1g.24gb+me      21     1/1        23.62      No     46     1     1   |
|                                                               1     1     1   |
+-------------------------------------------------------------------------------+
|   0  MIG 1g.24gb+gfx     47     4/4        23.62      No     46     1     1   |
|                                                               1     1     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 1g.24gb+me.all  65     1/1        23.62      No     46     4     4   |
|                                                               1     4     1   |
+-------------------------------------------------------------------------------+
|   0  MIG 1g.24gb-me      67     4/4        23.62      No     46     0     0   |
|                                                               1     0     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 2g.48gb          5     2/2        47.38      No     94     2     2   |
|                                                               2     2     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 2g.48gb+gfx     35     2/2        47.38      No     94     2     2   |
|                                                               2     2     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 2g.48gb+me.all  64     1/1        47.38      No     94     4     4   |
|                                                               2     4     1   |
+-------------------------------------------------------------------------------+
|   0  MIG 2g.48gb-me      66     2/2        47.38      No     94     0     0   |
|                                                               2     0     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 4g.96gb          0     1/1        95.12      No     188    4     4   |
|                                                               4     4     1   |
+-------------------------------------------------------------------------------+
|   0  MIG 4g.96gb+gfx     32     1/1        95.12      No     188    4     4   |
|                                                               4     4     1   |
+-------------------------------------------------------------------------------+
"""
PLACED = """\
GPU  0 Profile ID 14 Placements: {0,3,6,9}:3
GPU  0 Profile ID 21 Placements: {0,3,6,9}:3
GPU  0 Profile ID 47 Placements: {0,3,6,9}:3
GPU  0 Profile ID 65 Placements: {0,3,6,9}:3
GPU  0 Profile ID 67 Placements: {0,3,6,9}:3
GPU  0 Profile ID  5 Placements: {0,6}:6
GPU  0 Profile ID 35 Placements: {0,6}:6
GPU  0 Profile ID 64 Placements: {0,6}:6
GPU  0 Profile ID 66 Placements: {0,6}:6
GPU  0 Profile ID  0 Placement : {0}:12
GPU  0 Profile ID 32 Placement : {0}:12
"""
"""Both as public outputs of an RTX PRO 6000 Blackwell Server Edition have them."""


def made(table, *profiles):
    """The state after creating GPU instances of these profile IDs."""
    state = MigState(enabled=True, pending=True)
    for profile in profiles:
        state = created(state, table, profile)
    return state


@pytest.fixture
def mig(host):
    with MigHost(host, gpus=2, models=("RTX PRO 4500", "RTX PRO 6000")) as served:
        served.smi = host.smi
        assert served.smi("-i", "0", "-mig", "1")[0] == 0
        yield served


def test_profiles_are_listed_as_on_the_real_board(mig):
    code, told = mig.smi("mig", "-lgip", "-i", "0")
    assert code == 0 and told.endswith(LISTED)
    assert mig.smi("mig", "-lgipp", "-i", "0") == (0, PLACED)


def test_instances_are_numbered_as_on_the_real_board(mig):
    code, told = mig.smi("mig", "-i", "0", "-cgi", "2g.48gb,1g.24gb,1g.24gb", "-C")
    assert code == 0 and [line for line in told.splitlines() if "GPU instance ID" in line][::2] == [
        "Successfully created GPU instance ID  1 on GPU  0 using profile MIG 2g.48gb (ID  5)",
        "Successfully created GPU instance ID  5 on GPU  0 using profile MIG 1g.24gb (ID 14)",
        "Successfully created GPU instance ID  6 on GPU  0 using profile MIG 1g.24gb (ID 14)",
    ]
    listed = mig.smi("mig", "-lgi")[1]
    for row in ("1g.24gb           14        5          6:3", "2g.48gb            5        1          0:6"):
        assert f"|   0  MIG {row}     |\n" in listed


def test_only_profiles_for_graphics_have_the_capability(mig):
    """The third version of the struct has the capabilities at its end: word 36 of 38."""
    call = "p._nvmlGetFunctionPointer('nvmlDeviceGetGpuInstanceProfileInfoV')"
    with User(mig, "000001") as user:
        words = "(p.c_uint * 38)(152 | 3 << 24)"
        told = user.ask(f"[(lambda w: ({call}(kept['h'], n, w), w[1], w[36]))({words}) for n in range(18)]")
    shown = dict(enumerate(ast.literal_eval(told)))
    assert {n: row[1:] for n, row in shown.items() if row[2]} == {10: (47, 2), 11: (35, 2), 12: (32, 2)}
    assert [n for n, row in shown.items() if row[0] == 0] == [0, 1, 3, 7, 10, 11, 12, 13, 14, 15, 16]
    assert {shown[n][0] for n in (2, 4, 5, 6, 8, 9, 17)} == {3}  # not supported


@pytest.mark.parametrize(("table", "profiles", "expected"), [
    (SIX, [14] * 4, [(3, 0), (4, 3), (5, 6), (6, 9)]),
    (SIX, [47, 47, 14, 14], [(3, 0), (4, 3), (5, 6), (6, 9)]),
    (SIX, [64, 67, 67], [(1, 0), (5, 6), (6, 9)]),
    (SIX, [65, 67, 67, 67], [(3, 0), (4, 3), (5, 6), (6, 9)]),
    (SIX, [32], [(0, 0)]),
    (FIVE, [6, 5], [(1, 0), (2, 6)]),
    (FIVE, [64, 66], [(1, 0), (2, 6)]),
    (FOUR, [35, 5], [(1, 0), (2, 6)]),
    (FOUR, [0], [(0, 0)]),
])  # fmt: skip
def test_what_the_guide_allows_fits(table, profiles, expected):
    assert [(each.id, each.start) for each in made(table, *profiles).instances] == expected


@pytest.mark.parametrize(("table", "profiles"), [
    (SIX, [14] * 5), (SIX, [0, 67]), (SIX, [5, 5, 67]), (SIX, [21, 21]),
    (SIX, [65, 14]), (SIX, [14, 65]), (SIX, [64, 47]), (SIX, [65, 64]), (SIX, [21, 64]),
    (FIVE, [6, 6]), (FIVE, [64, 5]), (FIVE, [5, 5, 66]), (FIVE, [0, 66]),
    (FOUR, [5, 64]), (FOUR, [5, 66, 66]),
])  # fmt: skip
def test_media_engines_and_slices_go_to_one_instance(table, profiles):
    state = made(table, *profiles[:-1])
    with pytest.raises(NoRoomError):
        created(state, table, profiles[-1])
    assert remaining(state, table, table.by_id(profiles[-1])) == 0


@pytest.mark.parametrize(("table", "profile"), [(FIVE, 14), (FIVE, 21), (FOUR, 6), (FOUR, 14), (FOUR, 47), (SIX, 6)])
def test_what_a_board_does_not_have_is_refused(table, profile):
    with pytest.raises(UnknownProfileError):
        made(table, profile)


def test_a_b300_has_sevenths():
    table = mig_table(profile_of("NVIDIA B300 SXM6 AC"))
    assert [each.name for each in table.profiles] == [
        "1g.34gb", "1g.34gb+me", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb",
    ]  # fmt: skip
    assert len(made(table, *[19] * 7).instances) == 7


@pytest.mark.parametrize(("name", "model"), [
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000"), ("rtx pro 4500 blackwell", "RTX PRO 4500"),
    ("NVIDIA RTX PRO 5000 Blackwell", "RTX PRO 5000"),
])  # fmt: skip
def test_a_board_is_known_by_the_name_that_nvml_gives_it(name, model):
    assert profile_of(name) is profile_of(model)
