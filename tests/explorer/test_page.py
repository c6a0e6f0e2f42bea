# SPDX-License-Identifier: MIT
"""The page as a reader uses it, in a real browser."""
import csv
import importlib.util
import io
import os
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import CURVE, VIEWS, Page, same_numbers
from conftest import LONG, bayesaim_json

# Steps that end in a second.
SMALL = "amp?dim=40&iterations=30"


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
    if importlib.util.find_spec("bayesaim") is None:
        pytest.skip("the Python module is not built")
    page.open(state)
    page.find("#copy-python").click()
    page.until(lambda: page.text("#taken") == "Copied")
    lines = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert lines == page.text("#python")
    # In a process of its own: bayesaim chooses kernels of OpenBLAS when it is imported first.
    code = f"{lines}\nimport numpy\nprint('numbers', *[float(x) for x in numpy.asarray({result})])"
    # A module with sanitizers needs their runtime first; the browser would not start with it.
    preload = os.environ.get("BAYESAIM_PRELOAD")
    environment = {**os.environ, "LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0"} if preload else None
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG, env=environment)
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
