from decimal import Decimal

import pytest

from mews.kube.api.quantities import canonical, milli, parse, whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", Decimal(1)),
        ("500m", Decimal("0.5")),
        ("1Ki", Decimal(1024)),
        ("1.5Gi", Decimal(1610612736)),
        ("2k", Decimal(2000)),
        ("1e3", Decimal(1000)),
        (".5", Decimal("0.5")),
        ("-3", Decimal(-3)),
        ("100n", Decimal("0.0000001")),
    ],
)
def test_a_quantity_has_its_exact_value(text: str, value: Decimal) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("text", ["", "GPU", "1 Gi", "1KiB", "1.2.3", "--1", "1e"])
def test_text_that_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        parse(text)


def test_fractions_round_up_as_in_kubernetes() -> None:
    assert whole("1500m") == 2
    assert milli("1u") == 1
    assert milli("0.1") == 100


LARGEST = "9223372036854775807"
KEPT = {"1e20": "100e18", "10E": "10E", "123456789012345678": "123456789012345678"}
CAPPED = {"1" + "0" * 400: LARGEST, "9" * 30: LARGEST, "-" + "9" * 30: f"-{LARGEST}", "1e999999": LARGEST}


@pytest.mark.parametrize(("text", "stored"), [*KEPT.items(), *CAPPED.items()])
def test_an_amount_of_more_digits_than_an_int64_has_is_capped_as_parse_quantity_caps_it(text: str, stored: str) -> None:
    assert canonical(text) == stored
