# SPDX-License-Identifier: MIT
"""Each of these links is wrong in one way."""
import pytest

from links import ROOT, wrong_links

PAGE = ROOT / "docs/guide.md"


@pytest.mark.parametrize("link", ["[a](no.md)", "[a](guide.md#no-such-heading)", "[a](#no-such-heading)", "[a](http://example.org)",
                                  "[a](https://example)", "[a](../../outside.md)", "![a](images/no.png)", "[a][nowhere]"])
def test_a_wrong_link_is_found(link):
    assert len(wrong_links(PAGE, f"text {link} text")) == 1


@pytest.mark.parametrize("link", ["[a](theory.md)", "[a](../README.md#install-it)", "[a](https://arxiv.org/abs/2506.01582)", "`[a](no.md)`",
                                  "[a][b]\n\n[b]: https://example.org/x"])
def test_a_right_link_is_not(link):
    assert wrong_links(PAGE, f"text {link}\ntext") == []
