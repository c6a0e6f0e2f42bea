# SPDX-License-Identifier: MIT
"""Compares printed output with what a page shows.

`...` stands for any words of a line, or, alone on a line, for any lines. A number agrees if it rounds to the digits shown, up to one
unit of the last of them, or to 1e-6 of its value: kernels of other processors round differently.
"""
import re

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?(?![\w.])", re.I)
WORD = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?|[A-Za-z_]+|\S", re.I)


def same_number(shown, real):
    mantissa, _, exponent = shown.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return abs(float(real) - float(shown)) <= max(1.0001 * unit if decimals else 0.5 * unit, 1e-6 * abs(float(shown)))


def same_word(shown, real):
    if NUMBER.fullmatch(shown) and NUMBER.fullmatch(real):
        return same_number(shown, real)
    return shown == real


def matches(shown, real, same):
    """Whether the sequences agree, `...` in `shown` being any number of items."""
    if not shown:
        return not real
    if shown[0] == "...":
        return any(matches(shown[1:], real[k:], same) for k in range(len(real) + 1))
    return bool(real) and same(shown[0], real[0]) and matches(shown[1:], real[1:], same)


def words(line):
    return [w for part in line.split() for w in (["..."] if part == "..." else WORD.findall(part))]


def same_line(shown, real):
    return matches(words(shown), words(real), same_word)


def difference(shown, real):
    """"" if the outputs agree, else a text for people."""
    shown_lines = [line.strip() for line in shown.split("\n") if line.strip()]
    real_lines = [line.strip() for line in real.split("\n") if line.strip()]
    if matches(shown_lines, real_lines, same_line):
        return ""
    for i, line in enumerate(shown_lines):
        if line == "...":
            break
        if i >= len(real_lines) or not same_line(line, real_lines[i]):
            return f"the page shows\n    {line}\nit printed\n    {real_lines[i] if i < len(real_lines) else '(nothing)'}"
    return f"the page shows\n{shown}\nit printed\n{real}"


def has_number(shown, real):
    """Whether some number of the output `real` rounds to `shown`."""
    return any(same_number(shown, number[0]) for number in NUMBER.finditer(real))


def commands(code):
    """(command, shown output) of a block whose commands begin with `$ `; output None for a plain script."""
    if not code.startswith("$ "):
        return [(code, None)]
    result = []
    for line in code.split("\n"):
        if line.startswith("$ "):
            result.append([line[2:], ""])
        elif result[-1][0].endswith("\\"):
            result[-1][0] += "\n" + line
        else:
            result[-1][1] += line + "\n"
    return [tuple(pair) for pair in result]
