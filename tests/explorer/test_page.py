# SPDX-License-Identifier: MIT
"""The page as a reader uses it, in a real browser."""
import csv
import io
import os
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import Page
from conftest import LONG, bayesaim_json

VIEWS = ["curve", "amp", "spectrum", "phase", "plan"]
# Steps that end in a second.
SMALL = "amp?dim=40&iterations=30"


@pytest.fixture(scope="module")
def browser(explorer):
    one = Page(explorer)
    yield one
    one.close()


@pytest.fixture
def page(browser):
    browser.resize(1200)
    browser.messages()
    yield browser
    assert browser.messages() == []


def same_numbers(page: Page, columns: list[str]) -> dict:
    """Waits until the numbers on the page are those that the copied command prints; returns what it prints."""
    printed = bayesaim_json(page.commands()[0])
    expected = [{name: point[name] for name in columns} for point in printed["points"]]
    assert len(expected) > 1
    page.until(lambda: [{name: row.get(name) for name in columns} for row in page.table()] == expected)
    return printed


CURVE = ["alpha", "estimation_error", "generalization_error", "status"]


# ---- views and their numbers -----------------------------------------------------------------------------------------


def test_moving_the_slider_moves_the_curve_and_its_numbers(page):
    page.open("curve")
    before = same_numbers(page, CURVE)
    page.press("width", *[Keys.ARROW_RIGHT] * 7)
    assert "--width 0.57" in page.commands()[0]
    after = same_numbers(page, CURVE)
    assert after["points"][50]["estimation_error"] > before["points"][50]["estimation_error"]
    assert "strong recovery, α = 0.2038" in page.until(lambda: page.text(".mark-label"))  # 0.57 - 0.57^2/2 over 2
    assert page.run("return document.querySelector('#control-width-number').value") == "0.57"


@pytest.mark.parametrize(
    "changes",
    [
        {"channel": "hardmax", "tokens": "3"},
        {"channel": "linear", "label-noise": "0.3"},
        {"attention": "cross", "tokens": "3"},
        {"attention": "masked"},
        {"channel": "multi-head", "heads": "3", "beta": "2.5"},
        {"prior": "wigner"},
        {"prior": "power-law", "exponent": "1.5"},
        {"error": "generalization_error", "log-alpha": "on", "log-error": "on"},
    ],
)
def test_every_setting_reaches_the_program(page, changes):
    page.open("curve")
    for name, value in changes.items():
        control = page.find(f"#control-{name}")
        if control.tag_name == "select":
            page.choose(name, value)
        elif control.get_attribute("type") == "checkbox":
            control.click()
        else:
            page.type(name, value)
    command = page.commands()[0]
    if changes == {"attention": "masked"}:
        assert "--tokens 3" in command  # of two, a row has one entry
    options = set(changes) - {"error", "log-alpha", "log-error"}
    assert all(f"--{name} {changes[name]}" in command for name in options), command
    assert ("log:" in command) == ("log-alpha" in changes)
    same_numbers(page, CURVE)


def test_slow_models_are_computed_and_given_up(page):
    page.open("curve?channel=deep-softmax&points=3&alpha-max=0.6")
    same_numbers(page, CURVE)
    page.open("curve?channel=deep-softmax&layers=3&points=500")  # minutes
    page.until(lambda: page.find("#status").get_attribute("class") == "busy")
    page.choose("channel", "softmax")
    same_numbers(page, CURVE)


def test_the_published_hardmax_curve_is_one_click_away(page):
    page.open("curve")
    page.button("Published hardmax curve").click()
    commands = page.commands()
    assert commands[0].startswith("bayesaim theory --channel hardmax --width 0.5")
    assert commands[1].startswith("bayesaim theory --channel hardmax-as-printed --width 0.5")
    page.until(lambda: len(page.all("#charts .lines path.line")) == 2)
    labels = [label.text for label in page.all(".legend text")]
    assert labels == ["hardmax, T = 2, ρ = 0.5", "hardmax, as published, ρ = 0.5"]
    same_numbers(page, CURVE)


def test_curves_are_pinned_and_removed(page):
    page.open("curve")
    page.until(lambda: len(page.all("#charts .lines path.line")) == 1)
    for _ in range(2):
        page.button("Pin this curve").click()
        page.press("width", Keys.PAGE_UP)
    page.until(lambda: len(page.all("#charts .lines path.line")) == 3)
    page.button("Remove pins").click()
    page.until(lambda: len(page.all("#charts .lines path.line")) == 1)
    assert not page.button("Remove pins").is_enabled()


def test_a_mistake_is_told_and_can_be_mended(page):
    page.open("curve?pins=width%3D-1%26alpha%3D0.1%3A0.2%3A5")
    page.until(lambda: page.text("#status") == "--width must be positive and finite, got -1")
    assert page.find("#status").get_attribute("class") == "error"
    page.button("Remove pins").click()
    page.until(lambda: page.find("#status").get_attribute("class") == "")


def test_amp_streams_to_its_end(page):
    page.open(SMALL)
    page.button("Start AMP").click()
    page.until(lambda: " after " in page.text("#status"))
    printed = bayesaim_json(page.commands()[0].replace(" --record iterations.csv", ""))["points"][0]
    shown = page.readout()
    assert shown["measured error"] == printed["mean_error"]
    assert shown["theory"] == printed["theory_error"]
    assert shown["iteration"] == printed["iterations"] == len(page.table())
    assert len(page.all("#charts .plot:nth-of-type(2) circle.dot")) >= printed["iterations"]
    page.until(lambda: page.all("#charts path.steps"))  # the spectrum of R
    assert page.text("#status").startswith(printed["status"])


def test_amp_stops_half_way(page):
    page.open("amp?dim=200&iterations=500&damping=0.9&alpha=0.18")
    page.button("Start AMP").click()
    page.until(lambda: page.readout()["iteration"] >= 3)
    page.button("Stop").click()
    assert page.text("#status").startswith("stopped after ")
    stopped = page.readout()["iteration"]
    assert 3 <= stopped < 500
    assert not page.button("Stop").is_enabled()
    # A run to its end shows that no iteration of the stopped one follows.
    page.type("dim", "40")
    page.type("iterations", "5")
    page.button("Start AMP").click()
    page.until(lambda: " after 5 iterations" in page.text("#status"))
    assert [row["iteration"] for row in page.table()] == [1, 2, 3, 4, 5]


def test_spectrum_follows_the_noise(page):
    page.open("spectrum?dim=60")
    same_numbers(page, ["x", "density", "denoised"])
    page.press("noise-variance", *[Keys.ARROW_LEFT] * 20)
    printed = same_numbers(page, ["x", "density", "denoised"])
    page.until(lambda: page.readout()["mmse"] == printed["mmse"])
    assert printed["mmse"] < printed["configuration"]["noise_variance"] < 0.1
    assert len(printed["eigenvalues"]) == 60
    assert len(page.all("#charts path.steps")) == 2  # the histogram and its name
    page.choose("prior", "bilinear")
    same_numbers(page, ["x", "density", "denoised"])


def test_a_click_on_the_phase_diagram_gives_the_curve(page):
    page.open("phase?grid=12")
    same_numbers(page, ["alpha", "width", "estimation_error", "strong_recovery"])
    page.until(lambda: page.all("path.boundary"))
    before = page.commands()[1]
    surface = page.find("#charts .plot .surface")
    ActionChains(page.driver).move_to_element_with_offset(surface, 60, -60).click().perform()
    clicked = page.commands()[1]
    assert clicked != before and clicked.startswith("bayesaim theory --width ")
    surface.send_keys(Keys.ARROW_DOWN)
    below = page.commands()[1]

    def width(command: str) -> float:
        return float(command.split("--width ")[1].split()[0])

    assert width(below) == pytest.approx(width(clicked) - 1.5 / 12 * 11 / 11, abs=0.02)
    expected = f"ρ = {width(below):.4g}"
    page.until(lambda: any(label.text.endswith(expected) for label in page.all("#charts .legend text")))
    page.button("Open this curve").click()
    page.until(lambda: page.text("h1") == "Learning curve")
    assert f"--width {width(below):.3g}" in page.commands()[0]


def test_plan_tells_samples_memory_and_time(page):
    page.open("plan")
    page.type("dim", "500")
    page.type("target-error", "0.05")
    printed = bayesaim_json(page.commands()[0])
    assert printed["configuration"]["target_error"] == 0.05
    page.until(lambda: page.readout()["samples n"] == printed["samples"])
    shown = page.readout()
    assert shown["α = n/d²"] == printed["alpha"]
    assert shown["memory"] == printed["estimated_bytes"]
    assert shown["generalisation error there"] == printed["generalization_error"]
    times = page.run("return [...document.querySelectorAll('.readout dd')].map(dd => dd.textContent)")
    assert times[3].split()[-1] in ("second", "seconds", "minutes", "hours")


# ---- what can be taken away ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state",
    [
        "curve?channel=hardmax&tokens=3&width=0.8&log-alpha=on&pins=width%3D0.25%26alpha%3D0%3A0.3%3A50",
        "spectrum?prior=power-law&exponent=1.5&noise-variance=0.02&dim=80&seed=4",
        "phase?channel=hardmax&grid=12&log-alpha=on&at-alpha=1.2&at-width=0.75",
        "plan?channel=linear&label-noise=0.5&target-error=0.2&dim=200",
    ],
)
def test_a_link_reproduces_the_view(page, state):
    page.open(state)
    complete = {"curve": 2, "spectrum": 3, "phase": 2, "plan": 1}[state.split("?")[0]]
    page.until(lambda: len(page.curves()) >= complete and page.text("#status").split()[-1:] == ["ms"])
    # A control that is changed and changed back leaves the link as it is; a reader copies it.
    page.find("#copy-link").click()
    page.until(lambda: page.text("#taken") == "Copied")
    link = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert link.split("#")[0] == page.explorer.address
    commands, curves = page.commands(), page.curves()
    page.open(link.split("#")[1])
    page.until(lambda: page.curves() == curves)
    assert page.commands() == commands


def test_settings_go_into_the_address(page):
    page.open("curve")
    page.type("width", "0.33")
    page.choose("channel", "linear")
    page.find("#control-log-error").click()
    page.until(lambda: page.driver.current_url.endswith("#curve?width=0.33&channel=linear&log-error=on"))


@pytest.mark.parametrize("view", VIEWS)
def test_csv_svg_and_png(page, view):
    page.open({"amp": SMALL, "phase": "phase?grid=12"}.get(view, view))
    if view == "amp":
        page.button("Start AMP").click()
        page.until(lambda: " after " in page.text("#status"))
    page.until(lambda: len(page.curves()) > 0)
    files = {ending: Path(page.folder) / f"bayesaim-{view}.{ending}" for ending in ("csv", "svg", "png")}
    for ending, file in files.items():
        page.find(f"#save-{ending}").click()
        page.until(lambda: page.text("#taken") == f"Saved {file.name}" and file.exists())
    page.until(lambda: files["png"].stat().st_size > 5000)
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    picture = xml.etree.ElementTree.parse(files["svg"]).getroot()
    paths = [path.get("d") for path in picture.iter("{http://www.w3.org/2000/svg}path")]
    assert page.curves()[0] in paths
    assert "var(" not in files["svg"].read_text()  # needs no style sheet
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text())))
    if view == "amp":
        assert [float(row["true_error"]) for row in rows] == [row["true_error"] for row in page.table()]
    else:
        printed = bayesaim_json(page.commands()[0])
        name = {"spectrum": "density", "plan": "samples"}.get(view, "estimation_error")
        assert [float(row[name]) for row in rows] == [point[name] for point in printed["points"] or [printed]]


@pytest.mark.parametrize(
    "state, result",
    [
        ("curve?channel=linear&label-noise=0.3&attention=cross&points=5", "curve.estimation_error"),
        ("curve?channel=multi-head&heads=3&points=5", "curve.estimation_error"),
        ("curve?prior=power-law&exponent=1.5&points=5", "curve.estimation_error"),
        ("spectrum?prior=multi-head&heads=3&width=0.4", "[law.mmse]"),
        ("phase?channel=multi-head&grid=12&heads=2", "diagram.estimation_error.ravel()"),
        ("phase?attention=masked&grid=12", "diagram.estimation_error.ravel()"),
        ("amp?dim=40&iterations=20&seed=2", "[result.error]"),
        ("plan?dim=300&target-error=0.2", "[required.alpha, required.samples]"),
    ],
)
def test_python_lines_give_the_same_numbers(page, state, result):
    pytest.importorskip("bayesaim")
    page.open(state)
    page.find("#copy-python").click()
    page.until(lambda: page.text("#taken") == "Copied")
    lines = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert lines == page.text("#python")
    # In a process of its own: bayesaim chooses kernels of OpenBLAS when it is imported first.
    code = f"{lines}\nimport numpy\nprint('numbers', *[float(x) for x in numpy.asarray({result})])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG)
    assert run.returncode == 0, run.stderr
    numbers = [float(word) for word in run.stdout.splitlines()[-1].split()[1:]]
    printed = bayesaim_json(page.commands()[0].replace(" --record iterations.csv", ""))
    expected = {
        "curve": lambda: [point["estimation_error"] for point in printed["points"]],
        "phase": lambda: [point["estimation_error"] for point in printed["points"]],
        "spectrum": lambda: [printed["mmse"]],
        "amp": lambda: [printed["points"][0]["mean_error"]],
        "plan": lambda: [printed["alpha"], printed["samples"]],
    }[state.split("?")[0]]()
    assert numbers == pytest.approx(expected, rel=1e-9)


def test_the_command_is_copied(page):
    page.open("curve?width=0.7")
    page.find("#copy-command").click()
    page.until(lambda: page.text("#taken") == "Copied")
    copied = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == page.text("#command") and copied.startswith("bayesaim theory --width 0.7 ")


# ---- for everyone -----------------------------------------------------------------------------------------------------

# Text elements that are seen, and the contrast of each with the nearest background that is not transparent.
CONTRASTS = """
const parse = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const ground = node => {
    for (; node; node = node.parentElement) {
        const colour = parse(getComputedStyle(node).backgroundColor);
        if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
};
const found = [];
for (const node of document.body.querySelectorAll('*')) {
    const own = [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim());
    if (!own || node.closest('template, script, style, .key, :disabled') || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const ink = light(parse(node.closest('svg') ? style.fill : style.color)), paper = light(ground(node));
    found.push([node.textContent.trim().slice(0, 30), (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)]);
}
return found;
"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_text_has_contrast(page, view, dark):
    page.resize(1200, dark=dark)
    page.open(view)
    page.until(lambda: page.text("#status"))
    found = page.run(CONTRASTS)
    assert len(found) > 30
    assert [pair for pair in found if pair[1] < 4.5] == []
    ground = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in ground[4:-1].split(",")) < 200) == dark


def test_colours_of_curves_can_be_seen(page):
    for dark in (False, True):
        page.resize(1200, dark=dark)
        page.open("curve")
        contrasts = page.run("""
            const probe = document.body.appendChild(document.createElement('i'));
            const light = text => text.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
            const of = name => { probe.style.color = `var(${name})`; return light(getComputedStyle(probe).color) + 0.05; };
            return [0, 1, 2, 3, 4, 5, 6].map(i => of(`--c${i}`) / of('--surface')).map(r => Math.max(r, 1 / r));""")
        assert min(contrasts) >= 3


@pytest.mark.parametrize("view", VIEWS)
def test_everything_has_a_name_and_a_role(page, view):
    page.open(view)
    page.until(lambda: page.text("#status"))
    nodes = [node for node in page.devtools("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]

    def named(role: str) -> list[str]:
        return [node["name"]["value"] for node in nodes if node["role"]["value"] == role]

    focusable = [node for node in nodes if any(p["name"] == "focusable" and p["value"].get("value") for p in node.get("properties", []))]
    unnamed = [node["role"]["value"] for node in focusable if not node.get("name", {}).get("value") and node["role"]["value"] not in ("RootWebArea", "main")]
    assert unnamed == []
    assert named("link")[1:] == ["Learning curve", "AMP live", "Spectrum", "Phase diagram", "Plan"]
    assert len([node for node in nodes if node["role"]["value"] == "main"]) == 1
    assert named("navigation") == ["views"]
    assert len(named("slider")) >= 3
    assert page.run("return document.documentElement.lang") == "en"
    assert page.driver.title.endswith("bayesaim explorer")
    assert page.run("return document.querySelectorAll('h1').length") == 1
    assert page.run("return document.querySelectorAll('nav a[aria-current=page]').length") == 1
    ids = page.run("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_the_keyboard_reaches_everything_in_order_and_shows_where_it_is(page):
    page.open("curve?pins=width%3D0.25%26alpha%3D0%3A0.3%3A5")
    page.until(lambda: page.text("#status"))
    page.run("document.body.focus(); getSelection().removeAllRanges()")
    seen = []
    for _ in range(60):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        name, outline = page.run("""
            const at = document.activeElement;
            return [at.id || at.className || at.textContent.trim(), getComputedStyle(at).outlineStyle]""")
        if name in seen or at_end(page):
            break
        assert outline != "none", name
        seen.append(name)
    expected = [
        "skip", "Learning curve", "AMP live", "Spectrum", "Phase diagram", "Plan", "theme",
        "Pin this curve", "Remove pins", "Published hardmax curve", "surface", "Numbers",
        "control-channel", "control-attention", "control-prior", "control-width-number", "control-width",
        "control-tokens-number", "control-tokens", "control-beta-number", "control-beta",
        "control-error", "control-alpha-max-number", "control-alpha-max", "control-points-number", "control-points",
        "control-log-alpha", "control-log-error",
        "copy-command", "command", "copy-python", "python", "save-csv", "save-svg", "save-png", "copy-link",
    ]
    assert seen == expected


def at_end(page: Page) -> bool:
    return page.run("return document.activeElement === document.body")


def test_the_chart_is_read_with_the_keyboard(page):
    page.open("curve?points=5")
    printed = same_numbers(page, CURVE)
    surface = page.find(".surface")
    surface.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert surface.get_attribute("role") == "slider"
    second = printed["points"][1]
    assert surface.get_attribute("aria-valuetext") == f"α = n/d² {second['alpha']:.4g}, estimation error {second['estimation_error']:.4g}"
    assert page.find(".note").is_displayed()
    surface.send_keys(Keys.END)
    assert surface.get_attribute("aria-valuenow") == "4"


def test_the_pointer_reads_the_numbers(page):
    page.open("curve?points=5")
    printed = same_numbers(page, CURVE)
    ActionChains(page.driver).move_to_element(page.find(".surface")).perform()
    page.until(lambda: page.find(".note").is_displayed())
    middle = printed["points"][2]
    shown = page.run("return [...document.querySelectorAll('.note b')].map(b => b.textContent)")
    assert shown == [f"{middle['alpha']:.4g}", f"{middle['estimation_error']:.4g}"]


@pytest.mark.parametrize("width", [400, 900, 1400])
def test_every_view_fits_every_size(page, width):
    folder = Path(os.environ.get("BAYESAIM_SCREENSHOTS", page.folder))
    folder.mkdir(parents=True, exist_ok=True)
    for view in VIEWS:
        page.resize(width)
        page.open(view)
        page.until(lambda: page.curves())
        assert page.run("return document.documentElement.scrollWidth") <= width, view
        outside = page.run("""
            return [...document.querySelectorAll('main button, main input, main select, main figure')].filter(e => e.getClientRects().length)
                .filter(e => { const r = e.getBoundingClientRect(); return r.left < 0 || r.right > innerWidth + 0.5; }).map(e => e.id || e.className)""")
        assert outside == [], view
        file = folder / f"{view}-{width}.png"
        assert page.driver.save_screenshot(str(file)) and file.stat().st_size > 5000


def test_colours_are_chosen_and_kept(page):
    page.open("curve")
    button = page.find("#theme")
    assert button.get_attribute("aria-label") == "Colours: system"
    button.click()
    button.click()
    assert button.get_attribute("aria-label") == "Colours: dark"
    dark = page.run("return getComputedStyle(document.body).backgroundColor")
    page.open("plan")
    assert page.run("return getComputedStyle(document.body).backgroundColor") == dark
    page.find("#theme").click()


# ---- the page and its server -------------------------------------------------------------------------------------------


def test_nothing_comes_from_elsewhere(page):
    for view in VIEWS:
        page.open(view)
        page.until(lambda: page.curves())
    names = page.run("return performance.getEntriesByType('resource').map(e => e.name)")
    origin = page.explorer.address.split("?")[0]
    assert names and all(name.startswith((origin, "data:")) for name in names)


def test_it_says_when_the_program_has_ended(start):
    explorer = start()
    page = Page(explorer)
    try:
        page.open("curve")
        page.until(lambda: page.curves())
        explorer.end()
        page.press("width", Keys.ARROW_RIGHT)
        page.until(lambda: page.text("#status").startswith("The program does not answer any more."))
    finally:
        page.close()


def test_closing_the_page_ends_its_computation(start):
    explorer = start()
    page = Page(explorer)
    try:
        for _ in range(2):
            page.driver.switch_to.new_window("tab")
            page.driver.get(f"{explorer.address}#amp?dim=300&iterations=500&damping=0.9&alpha=0.18")
            page.until(lambda: page.text("#status") == "Ready: start AMP")
            page.button("Start AMP").click()
            page.until(lambda: page.readout()["iteration"] >= 1)
    finally:
        page.close()
    status, text = explorer.get("/run/theory", width="0.5", alpha="0.1")
    assert status == 200 and "estimation_error" in text
