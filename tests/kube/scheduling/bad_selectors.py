"""Device selectors that a server refuses, and such as just pass: what each costs at worst is probed to the unit."""

from __future__ import annotations

from mews.kube.emulated.packs.devices.device_selectors import selector_errors

_D = 'device.attributes["d.example.com"]'
_PLAIN = (
    "true",
    "",
    "1",
    '"x"',
    "device",
    "device.driver",
    "device.allowMultipleAllocations",
    "device.attributes",
    f"{_D}.model",
    f"{_D}.model ==",
    f"{_D}.model == unknown",
    "device.nothing",
    "device.driver == 1",
    "self.driver == ''",
    'device.capacity["d.example.com"].memory',
    'device.capacity["d.example.com"].memory.nothing()',
    "x" * 10241,
    "[1, 2].map(x, x)",
    "dyn(true)",
    f"{_D}.model + 1 == 'x' + [1]",
    f"{_D}.model.nothing(1)",
    f"{_D}.?model",
    f"true ? {_D}.model : true",
    f"[{_D}.model, 1][0]",
    "timestamp('2026-01-01T00:00:00Z')",
    "cel.bind(own, device.driver, own)",
)
_PARTS = (
    "a == b",
    'a + b == "x"',
    "device.driver == a",
    f'{_D}.model == "x"',
    f'{_D}.?model.orValue("") == a',
    f'{_D}.model.matches("a.*b")',
    f"{_D}.model.startsWith(a)",
    f"{_D}.model.contains(b)",
    f"a in {_D}",
    f"{_D}.version.isGreaterThan(semver(a))",
    f"has({_D}.model)",
    "device.attributes[a].size() > 1",
    "device.attributes[a].all(c, c == b)",
    "device.attributes[a].exists(c, device.attributes[a][c] == b)",
    'device.capacity[a].memory.compareTo(quantity("1Gi")) > 0',
    "device.capacity[a].all(c, c == a)",
    "device.driver.lowerAscii() == a",
    "cel.bind(own, device.attributes[a], own.model == b)",
    "device.driver.split('.').size() > 1",
    "[a, b, device.driver].exists(c, c == a)",
    "a.replace(b, 'x') == 'x'",
    "device.allowMultipleAllocations",
)


def selectors(*, shares: bool) -> list[str]:
    """Expressions of every kind; of those that are tried for many values, the longest that passes and the next one."""
    found = list(_PLAIN)
    for part in _PARTS:
        each = f"device.attributes.all(a, device.capacity.all(b, {part}))"
        low, high = 0, 2000
        while low + 1 < high:
            middle = (low + high) // 2
            passes = not list(selector_errors(_selector(_many(each, middle)), "s", shares=shares))
            low, high = (middle, high) if passes else (low, middle)
        found += [_many(each, low), _many(each, low + 1)]
    return found


def _many(expression: str, times: int) -> str:
    return f"[{','.join('0' * times)}].all(n, {expression})"


def _selector(expression: str) -> dict[str, dict[str, str]]:
    return {"cel": {"expression": expression}}
