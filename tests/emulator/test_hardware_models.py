"""Models of servers and chassis are files, read as GPU models are: whole, typed, and refused in one line."""

import re
from pathlib import Path

import pytest

from mews.emulator.hardware.chassis_profiles import PROFILES, chassis_models
from mews.emulator.hardware.host_profiles import HOST_PROFILES, parse_host_profile, server_models
from mews.emulator.hardware.latency import Fixed, Gamma, Normal, Uniform

HARDWARE = Path(__file__).parents[2] / "emulator" / "hardware"
SERVER = (HARDWARE / "servers" / "falcon-4005.yaml").read_text()
CHASSIS = (HARDWARE / "chassis_models" / "falcon-4005.yaml").read_text()


def test_the_falcons_server_has_the_latencies_it_had():
    falcon = HOST_PROFILES["falcon-4005"]
    assert (falcon.link, falcon.function, falcon.node) == (Uniform(0.1, 0.3), Uniform(0.2, 0.6), Uniform(0.01, 0.1))
    assert (falcon.driver, falcon.nvml) == (Normal(2.0, 0.4, 1.0, 4.0), Normal(0.8, 0.3, 0.2, 2.0))
    assert (falcon.surprise, falcon.drain) == (Uniform(0.1, 0.5), Normal(2.81, 0.67, 1.0, 5.0))
    assert (falcon.remove, falcon.pciehp) == (Normal(3.3, 0.8, 1.2, 6.0), True)
    assert falcon.source.startswith("assumed: the measured attach (contract chassis.md 2)")


@pytest.mark.parametrize(
    ("chassis", "attach", "lying", "shares"),
    [
        ("A", Normal(10.12, 1.56, 7.0, 12.5), Normal(15.37, 0.77, 12.5, 18.2), [155 / 171, 1 / 362]),
        ("B", Normal(9.27, 0.88, 5.0, 12.5), Normal(15.24, 0.92, 11.0, 18.2), [95 / 190, 1 / 362, 4 / 190]),
        ("any", Normal(9.39, 1.04, 5.0, 12.5), Normal(15.32, 0.83, 11.0, 18.2), [250 / 361, 1 / 362, 4 / 361]),
    ],
)
def test_the_falcons_chassis_have_the_manners_they_had(chassis, attach, lying, shares):
    profile = PROFILES["falcon-4005"].profile(chassis)
    assert (profile.name, profile.attach) == ("falcon-4005", attach)
    assert profile.detach == Gamma(4.5, 4.0, 0.698, 13.4)
    assert profile.read == Normal(2.45, 1.5, 1.0, 8.8)
    assert [quirk["probability"] for quirk in profile.quirks] == shares  # to the last bit
    assert profile.quirks[0]["latency"] == lying
    assert all(quirk["count"] is None for quirk in profile.quirks)


def test_a_server_extends_another(tmp_path):
    (tmp_path / "base.yaml").write_text(SERVER)
    (tmp_path / "of_it.yaml").write_text("extends: base\nlink: 3\npciehp: false\n")
    models = server_models(tmp_path)
    assert list(models) == ["instant", "base", "of it"]
    assert (models["of it"].link, models["of it"].pciehp, models["of it"].nvml) == (
        Fixed(3.0),
        False,
        HOST_PROFILES["falcon-4005"].nvml,
    )


@pytest.mark.parametrize(
    ("models", "text", "words"),
    [
        (server_models, f"{SERVER}lnik: 7\n", r"wrong\.yaml: lnik: unknown field; allowed: .*\blink\b"),
        (server_models, SERVER.replace("[0.1, 0.3]", "[3, 1]"), r"latency .*uniform.*: must be seconds >= 0"),
        (server_models, f"{SERVER}pciehp: 1\n", r"pciehp 1: must be true or false"),
        (server_models, "link: 1\n", r"wrong: source None: must be a text"),
        (chassis_models, f"{CHASSIS}slots: 7\n", r"wrong\.yaml: slots: unknown field; allowed: .*\bquirks\b"),
        (chassis_models, CHASSIS.replace("  A:\n", "  A:\n    atach: 1\n"), r"wrong: named\.A\.atach: unknown field"),
        (chassis_models, CHASSIS.replace("detach: {gamma", "detach: {gama"), r"latency .*gama.*: must be"),
        (chassis_models, "attach: 1\n", r"wrong: source None: must be a text"),
    ],
)
def test_a_file_that_is_no_model_is_refused_in_one_line(models, text, words, tmp_path):
    (tmp_path / "wrong.yaml").write_text(text)
    with pytest.raises(ValueError, match=words) as refused:
        models(tmp_path)["wrong"]
    assert re.fullmatch(r"[^\n]+", str(refused.value))


def test_a_hardware_file_names_a_server_as_it_always_did():
    assert parse_host_profile("falcon-4005") is HOST_PROFILES["falcon-4005"]
    with pytest.raises(ValueError, match="must be one of instant, falcon-4005 or a mapping of link"):
        parse_host_profile("falcon")
