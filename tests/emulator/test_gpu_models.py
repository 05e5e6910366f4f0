"""GPU models are files: whole, typed, and read when they are asked for."""

import pytest
from msgspec import ValidationError

from mews.emulator.hardware.gpu_profiles import ALIASES, DEFAULT_MODEL, PROFILES, gpu_models

WHOLE = (PROFILES._files[DEFAULT_MODEL]).read_text()


@pytest.mark.parametrize("name", PROFILES)
def test_a_model_of_ours_is_whole_and_within_its_own_limits(name):
    model = PROFILES[name]
    assert model.device_id & 0xFFFF == model.subsystem_id & 0xFFFF == 0x10DE
    assert model.min_power_limit_mw <= model.power_limit_mw <= model.max_power_limit_mw
    assert model.idle_power_mw < model.power_limit_mw
    assert model.idle_sm_clock_mhz <= model.sm_clock_mhz
    assert model.idle_temperature_c < model.busy_temperature_c < model.slowdown_temperature_c
    assert model.slowdown_temperature_c < model.shutdown_temperature_c


def test_aliases_are_of_models_that_there_are():
    assert {*ALIASES.values()} <= {*PROFILES}
    assert not {*ALIASES} & {*PROFILES}


def test_a_model_extends_another(tmp_path):
    (tmp_path / "BASE.yaml").write_text(WHOLE)
    (tmp_path / "OF_IT.yaml").write_text("extends: BASE\ncores: 7\n")
    models = gpu_models(tmp_path)
    assert list(models) == ["BASE", "OF IT"]
    assert (models["OF IT"].cores, models["OF IT"].name) == (7, models["BASE"].name)
    assert models["BASE"].cores == PROFILES[DEFAULT_MODEL].cores


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (f"{WHOLE}coers: 7\n", ValueError, r"WRONG\.yaml: coers: unknown field; allowed: .*\bcores\b"),
        (WHOLE.replace("cores: 5120", "cores: many"), ValidationError, "Expected `int`, got `str` - at `\\$.cores`"),
        ("name: half\n", ValidationError, "missing required field"),
    ],
)
def test_a_file_that_is_no_model_is_refused(text, error, words, tmp_path):
    (tmp_path / "WRONG.yaml").write_text(text)
    with pytest.raises(error, match=words):
        gpu_models(tmp_path)["WRONG"]
