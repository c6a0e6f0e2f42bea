# SPDX-License-Identifier: MIT
"""The page for everyone: names and roles, contrast, keyboard, sizes of screens."""
import os
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import CURVE, VIEWS, Page, same_numbers

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
    if (!own || node.closest('template, script, style, :disabled') || !node.getClientRects().length) continue;
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
