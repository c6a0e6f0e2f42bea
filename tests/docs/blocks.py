# SPDX-License-Identifier: MIT
"""Code blocks of a markdown page, with the rules for testing them.

Every block is fenced and has a language: sh, python, cpp, toml, or text, which is not run. A rule is an HTML comment in the
lines above its block:

    <!-- test: skip: REASON -->          not run (its syntax is still checked)
    <!-- test: with --dim 30 -->         options of every `bayesaim` command of the block; for python, NAME=VALUE of calls
    <!-- test: exit 2 -->                the exit code that the block ends with, instead of 0
    <!-- test: interrupt -->             each command is a server: it is interrupted after a while, and must end with 0
    <!-- test: file NAME -->             the block is written to a file instead of run
    <!-- test: before
    CODE                                 runs before the block, in its language
    -->
"""
import re
from dataclasses import dataclass, field

LANGUAGES = ("sh", "python", "cpp", "toml", "text")
RULE = re.compile(r"<!-- test: (.*?)\s*-->\s*$", re.S)
RULES = ("skip: ", "with ", "exit ", "interrupt", "file ", "before\n")


@dataclass
class Block:
    language: str
    line: int                 # of its first line of code, from 1 on
    code: str
    rules: dict = field(default_factory=dict)


class BadPage(Exception):
    pass


def read_blocks(text):
    """The blocks of a page in order; BadPage for one that no test would see."""
    lines, blocks, rules, i = text.split("\n"), [], {}, 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("```"):
            language = line[3:].strip()
            if language not in LANGUAGES:
                raise BadPage(f"line {i + 1}: language of a block must be one of {', '.join(LANGUAGES)}, got '{language}'")
            end = next((j for j in range(i + 1, len(lines)) if lines[j] == "```"), None)
            if end is None:
                raise BadPage(f"line {i + 1}: block must end with ```")
            blocks.append(Block(language, i + 2, "\n".join(lines[i + 1:end]) + "\n", rules))
            rules, i = {}, end
        elif line.startswith("<!-- test:"):
            end = next(j for j in range(i, len(lines)) if "-->" in lines[j])
            rule = RULE.match("\n".join(lines[i:end + 1]))
            name = rule and next((r for r in RULES if rule[1].startswith(r) or rule[1] == r.strip()), None)
            if not name:
                raise BadPage(f"line {i + 1}: unknown rule '{line}'")
            rules[name.strip(" :\n")] = rule[1][len(name):]
            i = end
        elif line.startswith("    ") and (i == 0 or not lines[i - 1].strip()) and not in_list(lines, i):
            raise BadPage(f"line {i + 1}: an indented block has no language; fence it with ```")
        elif line.strip() and rules:
            raise BadPage(f"line {i + 1}: a rule must stand right above its block")
        i += 1
    return blocks


def in_list(lines, i):
    above = next((line for line in reversed(lines[:i]) if line.strip() and not line.startswith("    ")), "")
    return bool(re.match(r"\s*([-*]|\d+\.) ", above))
