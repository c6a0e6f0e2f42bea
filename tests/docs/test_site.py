# SPDX-License-Identifier: MIT
"""The check of the built manual: each of these pages is wrong in one way. And formulas of docstrings, shown as code."""
import sys

import pytest

from links import ROOT

sys.path.insert(0, str(ROOT / "docs/site"))
from check import check  # noqa: E402
from formulas import words_as_code  # noqa: E402


def wrong(folder, body):
    (folder / "page.html").write_text(f"<html><body>{body}</body></html>")
    (folder / "broken.png").write_bytes(b"no picture")
    return check(folder.resolve())[0]


@pytest.mark.parametrize("body", [
    r"<p>the error \frac{1}{2}</p>", "<p>costs $d^2$ numbers</p>", "<p>tokens x_a and d x d</p>", "<p>E||S||</p>", "<td>sqrt(d)</td>", "<p>alpha = 0.1</p>",
    '<a href="no.html">a</a>', '<a href="#nowhere">a</a>', '<img src="no.png">', '<img src="broken.png">',
    '<script src="https://example.org/a.js"></script>', '<link rel="stylesheet" href="//example.org/a.css">',
])
def test_a_wrong_page_is_found(tmp_path, body):
    assert wrong(tmp_path, body)


@pytest.mark.parametrize("body", [
    r"<p>the option <code>--alpha x_a ^ $HOME</code></p>", r'<span class="katex"><math><annotation>\frac12</annotation></math></span>',
    '<h2 id="here">h</h2><a href="page.html#here">a</a>', '<a href="https://arxiv.org/abs/2506.01582">a</a>',
])
def test_a_right_page_is_not(tmp_path, body):
    assert wrong(tmp_path, body) == []


@pytest.mark.parametrize("line, shown", [
    ("S = W W^T / sqrt(r d), W of size d x r, r = width d", "`S = W W^T / sqrt(r d)`, W of size `d x r`, `r = width d`"),
    ("error E||Shat - S||^2/d of a fit (C)", "error `E||Shat - S||^2/d` of a fit (C)"),
    ("in units of ||S - previous||/||R||, of each", "in units of `||S - previous||/||R||`, of each"),
    ("a callback, or `x = 1`; a list of names", "a callback, or `x = 1`; a list of names"),
])
def test_formulas_of_a_sentence_are_code(line, shown):
    assert words_as_code(line) == shown
