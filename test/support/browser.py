# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that shows pages; `.ci/browser` installs what it needs."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NPM = ROOT / "build" / "npm"
AXE = NPM / "axe-core" / "axe.min.js"

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
)


def missing():
    """Names of what is not installed."""
    programs = {"chromium": chromium(), "chromedriver": shutil.which("chromedriver")}
    return [name for name, path in programs.items() if not path] + ([] if AXE.exists() else ["axe-core in build/npm"])


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


def require_browser():
    """Skip a test without a browser; in CI, which installs one, it fails."""
    absent = missing()
    if absent:
        reason = f"needs {', '.join(absent)}: run .ci/browser"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


class Browser:
    """A page in a browser."""

    def __init__(self, driver):
        self.driver = driver

    def run(self, script, *arguments):
        """Result of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def command(self, name, **arguments):
        """Answer of a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def open(self, path, width=1400, scheme="light", script=True, media=""):
        """Show a page and draw all of its plots."""
        self.command("Emulation.setScriptExecutionDisabled", value=not script)
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", media=media, features=features)
        self.driver.get(path.as_uri())
        if script:
            self.run("document.querySelectorAll('details').forEach((one) => (one.open = true)); Charts.drawAll();")
            self.run("return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")

    def problems(self):
        """Messages of the console."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def accessibility(self):
        """Violations of the rules of axe, with the elements concerned."""
        self.run(AXE.read_text(encoding="utf-8"))
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {runOnly: arguments[0], resultTypes: ['violations']}).then((r) => done(r.violations));",
            tags,
        )
        return {one["id"]: [node["html"][:160] for node in one["nodes"]][:4] for one in found}


@contextmanager
def browser(folder):
    """A browser whose profile is in a folder."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium()
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    driver.set_script_timeout(120)  # ends what hangs; the rules of axe take half a minute on a busy computer
    try:
        yield Browser(driver)
    finally:
        driver.quit()
