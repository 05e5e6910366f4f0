"""Names of the last release still work, and say what they are called now."""

import importlib

import pytest

OLD = [
    ("mews.testing", "BadInput", "BadInputError"),
    ("mews.testing", "Lacks", "RequirementError"),
    ("mews.harness.errors", "BadInput", "BadInputError"),
    ("mews.harness.errors", "Lacks", "RequirementError"),
    *(
        ("mews.kube.api.errors", name, f"{name}Error")
        for name in (
            "AlreadyExists", "BadRequest", "Conflict", "Forbidden", "Gone", "Invalid", "NotFound", "TooManyRequests",
            "Unauthorized", "Unavailable",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("module", "old", "new"), OLD)
def test_an_old_name_is_the_new_one_and_says_so(module, old, new):
    there = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=rf"\.{old} is now {new}$"):
        found = getattr(there, old)
    assert found is getattr(there, new)


@pytest.mark.parametrize("module", sorted({module for module, _, _ in OLD}))
def test_what_never_was_there_is_not(module):
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        importlib.import_module(module).Nothing  # noqa: B018


def test_a_chassis_server_still_takes_its_speed_and_says_where_it_is_now():
    from mews.emulator.inventory_file import load_hardware
    from mews.emulator.serve import ChassisServer
    from mews.harness.scenario.loader import shipped

    with pytest.warns(DeprecationWarning, match=r"speed is now context=EmulationContext\(speed=…\)$"):
        server = ChassisServer(load_hardware(shipped("hardware", "demo")), speed=50)
    try:
        assert server.rack.clock.speed == 50
    finally:
        server.stop()
