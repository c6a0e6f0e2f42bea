# SPDX-License-Identifier: MIT
"""Opens the built manual in a browser, without network: check_browser.py FOLDER [FOLDER FOR SCREENSHOTS]

Every page, as wide as a desk and as a phone: nothing is wider than the window, every picture is drawn, every formula has its fonts, and
the console is silent. Search finds a word, through a server and in files.
"""
import functools
import http.server
import sys
import threading
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

WIDTHS = {"desk": 1300, "phone": 400}
LONG = 60  # seconds after which something has failed, on a loaded machine too
STATE = """
return {overflow: document.documentElement.scrollWidth - window.innerWidth,
        pictures: [...document.images].filter(i => !i.complete || i.naturalWidth == 0).map(i => i.src),
        formulas: document.querySelectorAll('.katex').length,
        fonts: [...document.fonts].filter(f => f.family.startsWith('KaTeX') && f.status == 'error').length,
        height: document.documentElement.scrollHeight};
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def browser(width):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", f"--window-size={width},1000",
                     "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options)
    # Chromium makes no window narrower than 500; a device may be.
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
    return driver


def check_pages(driver, base, names, kind, shots):
    for name in names:
        driver.get(f"{base}/{name}")
        driver.execute_async_script("document.fonts.ready.then(arguments[0])")
        state = driver.execute_script(STATE)
        for what in ("pictures", "fonts"):
            if state[what]:
                yield f"{name} ({kind}): broken {what}: {state[what]}"
        if state["overflow"] > 0:
            yield f"{name} ({kind}): {state['overflow']} pixels wider than the window"
        for entry in driver.get_log("browser"):
            yield f"{name} ({kind}): {entry['message']}"
        if shots:
            metrics = {"width": WIDTHS[kind], "height": min(state["height"], 16000), "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            driver.save_screenshot(str(shots / f"{Path(name).stem}-{kind}.png"))
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**metrics, "height": 1000})


def search(driver, address, word, expected):
    """What is wrong with a search for a word whose first results lead to the page `expected`."""
    driver.get(address)
    field = WebDriverWait(driver, LONG).until(lambda d: d.find_element(By.CSS_SELECTOR, "[data-md-component=search-query]"))
    driver.execute_script("document.querySelector('#__search').checked = true; arguments[0].focus()", field)
    field.send_keys(word)
    try:
        found = WebDriverWait(driver, LONG).until(lambda d: [a.get_attribute("href") for a in d.find_elements(By.CSS_SELECTOR, ".md-search-result__link")])
    except Exception:
        return f"search for {word} at {address.partition(':')[0]}: nothing is found"
    return "" if any(expected in link for link in found) else f"search for {word}: {found[:3]}"


def main(root, shots):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base, wrong = f"http://127.0.0.1:{server.server_port}", []
    names = [file.name for file in sorted(root.glob("*.html")) if file.name != "404.html"]
    for kind, width in WIDTHS.items():
        driver = browser(width)
        try:
            wrong += check_pages(driver, base, names, kind, shots)
            if kind == "desk":
                for start in (f"{base}/index.html", (root / "index.html").as_uri()):
                    wrong += filter(None, [search(driver, start, "whiteness", "html#"), search(driver, start, "gradient_descent", "reference-python")])
        finally:
            driver.quit()
    server.shutdown()
    return wrong, len(names)


if __name__ == "__main__":
    folder = Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    found, count = main(Path(sys.argv[1]).resolve(), folder)
    if found:
        sys.exit("\n".join(found))
    print(f"{count} pages in a browser, as wide as a desk and as a phone; search finds what it should")
