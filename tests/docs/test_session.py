# SPDX-License-Identifier: MIT
"""The rules by which pages are tested: each of these pages or outputs is wrong in one way."""
import pytest

from blocks import BadPage, read_blocks
from session import commands, difference, has_number


@pytest.mark.parametrize("page", [
    "```\ncode\n```\n",                                   # no language
    "```bash\ncode\n```\n",                               # another language
    "```sh\ncode\n",                                      # no end
    "text\n\n    code\n",                                 # indented
    "<!-- test: slow -->\n```sh\ncode\n```\n",            # unknown rule
    "<!-- test: skip: no -->\ntext\n```sh\ncode\n```\n",  # rule of no block
])
def test_a_block_that_no_test_would_see_is_refused(page):
    with pytest.raises(BadPage):
        read_blocks(page)


def test_rules_belong_to_the_next_block():
    first, second = read_blocks("<!-- test: exit 2 -->\n<!-- test: with --dim 3 -->\n```sh\na\n```\n\n```toml\nb = 1\n```\n")
    assert first.rules == {"exit": "2", "with": "--dim 3"} and first.code == "a\n" and first.line == 4
    assert second.rules == {} and second.language == "toml"


def test_numbers_agree_to_the_digits_shown():
    assert difference("x 0.1234", "x  0.12341") == ""
    assert difference("x 0.1234", "x 0.1236")
    assert difference("n 1200", "n 1201")
    assert difference("z = -1.0, 1 +- 0.100", "z = 1.0, 1 +- 0.100")
    assert difference("0.3(1)", "0.3(2)")


def test_dots_stand_for_words_and_lines():
    assert difference("a ... d\n...\nend", "a b c d\nmore\nlines\nend") == ""
    assert difference("a ... d", "a b c")
    assert difference("a\n...", "b\nc")
    assert difference("a", "a\nb")


def test_a_number_of_a_comment_is_printed():
    assert has_number("0.3156", "alpha 1 error 0.31562")
    assert not has_number("0.3156", "alpha 1 error 0.3166")


def test_commands_have_their_output():
    assert commands("$ one\nout\n$ two \\\n  more\n") == [("one", "out\n"), ("two \\\n  more", "\n")]
    assert commands("one\ntwo\n") == [("one\ntwo\n", None)]
