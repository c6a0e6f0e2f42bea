# SPDX-License-Identifier: MIT
"""The page in Chromium."""
import json
import shutil
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from conftest import LONG, Explorer, bayesaim_json

VIEWS = ["curve", "amp", "spectrum", "phase", "plan"]
CURVE = ["alpha", "estimation_error", "generalization_error", "status"]
OPTIONS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]


class Page:
    def __init__(self, explorer: Explorer):
        self.explorer = explorer
        self.folder = tempfile.mkdtemp(prefix="bayesaim_explorer_")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for option in [*OPTIONS, f"--user-data-dir={self.folder}/profile", "--window-size=1200,900"]:
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        origin = explorer.address.split("/?")[0]
        self.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=self.folder)
        self.devtools("Browser.grantPermissions", origin=origin, permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])

    def close(self) -> None:
        self.driver.quit()
        shutil.rmtree(self.folder, ignore_errors=True)

    def devtools(self, command: str, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def run(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def resize(self, width: int, height: int = 900, dark: bool = False) -> None:
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, state: str) -> None:
        """Opens the page anew, with this state in its address."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.explorer.address}#{state}")
        self.until(lambda: self.text("h1"))

    def until(self, condition):
        """Waits for a condition; returns its value."""
        end = time.monotonic() + LONG
        while True:
            value = condition()
            if value:
                return value
            assert time.monotonic() < end, (condition, self.text("#status"), self.messages())
            time.sleep(0.02)

    def find(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def button(self, label: str):
        return self.driver.find_element(By.XPATH, f"//button[normalize-space()='{label}']")

    def commands(self) -> list[str]:
        return self.text("#command").splitlines()

    def choose(self, name: str, value: str) -> None:
        """Chooses from a list as a user does."""
        self.run("const s = arguments[0]; s.value = arguments[1]; s.dispatchEvent(new Event('input', {bubbles: true}))", self.find(f"#control-{name}"), value)

    def press(self, name: str, *keys: str) -> None:
        """Presses keys on the slider of a control."""
        self.find(f"#control-{name}").send_keys(*keys)

    def type(self, name: str, value: str) -> None:
        field = self.find(f"#control-{name}-number")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(value, Keys.TAB)

    def table(self) -> list[dict]:
        """The unfolded numbers, at full precision."""
        self.run("document.querySelector('.numbers').open = true")
        return self.run("""
            const names = [...document.querySelectorAll('.numbers th')].map(th => th.textContent.replaceAll(' ', '_'));
            return [...document.querySelectorAll('.numbers tbody tr')].map(tr => Object.fromEntries(
                [...tr.children].map((td, i) => [names[i], td.dataset.value !== undefined ? Number(td.dataset.value) : td.textContent === "–" ? null : td.textContent])))""")

    def readout(self) -> dict[str, float]:
        """The large numbers, at full precision."""
        return self.run("""
            return Object.fromEntries([...document.querySelectorAll('.readout > div')].map(div =>
                [div.querySelector('dt').textContent, Number(div.querySelector('dd').dataset.value)]))""")

    def curves(self) -> list[str]:
        """What is drawn."""
        return self.run("return [...document.querySelectorAll('#charts path.line, #charts path.band, #charts path.steps')].map(p => p.getAttribute('d'))")

    def messages(self) -> list[str]:
        """What the browser complained about since the last call."""
        return [json.dumps(entry) for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def same_numbers(page: Page, columns: list[str]) -> dict:
    """Waits until the numbers on the page are those that the copied command prints; returns what it prints."""
    printed = bayesaim_json(page.commands()[0])
    expected = [{name: point[name] for name in columns} for point in printed["points"]]
    assert len(expected) > 1
    page.until(lambda: [{name: row.get(name) for name in columns} for row in page.table()] == expected)
    return printed
