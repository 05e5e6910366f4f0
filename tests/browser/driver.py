"""Chromium without a window, driven through chromedriver, and what the tests of our own pages ask of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.browser.chromium import program

PATIENCE_S = 60.0


class Browser:
    """A page at a time; ``js`` runs a function's body in it, ``until`` waits for one to hold."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str, ready: str) -> None:
        """Go there, and wait until that expression holds."""
        self.driver.get("about:blank")
        self.driver.get(url)
        self.until(ready)

    def js(self, body: str, *arguments: Any) -> Any:
        return self.driver.execute_script(body, *arguments)

    def until(self, expression: str) -> None:
        """Wait for a JavaScript expression to hold."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.js(f"try {{ return Boolean({expression}); }} catch (e) {{ return false; }}"):
            assert time.monotonic() < deadline, f"never: {expression}; {self.complaints()}"
            time.sleep(0.05)

    def text(self, selector: str) -> str:
        return str(self.js("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def size(self, width: int, height: int = 900) -> None:
        values = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", values)

    def click_at(self, x: float, y: float) -> None:
        """A real click of the mouse, by the window's coordinates."""
        for kind in ("mousePressed", "mouseReleased"):
            values = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", values)

    def wheel_at(self, x: float, y: float, delta: float, *, ctrl: bool = False) -> None:
        values = {"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": delta, "modifiers": 2 if ctrl else 0}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", values)

    def complaints(self) -> list[str]:
        """Errors that the page caused, blocked scripts and styles among them, since they were last asked for."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@contextmanager
def browser() -> Iterator[Browser]:
    """A Browser; the test is skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    found, chromedriver = program(), shutil.which("chromedriver")
    if chromedriver is None:
        pytest.skip("no chromedriver on PATH (Debian: apt install chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = found
    for argument in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=chromedriver))
    try:
        driver.set_script_timeout(PATIENCE_S)
        yield Browser(driver)
    finally:
        driver.quit()
