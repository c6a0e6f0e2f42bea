# SPDX-License-Identifier: MIT
"""Formulas inside the sentences of docstrings and comments, which are written for a terminal, are shown as code, letter by letter."""
import re

GREEK = ("alpha|beta|gamma|delta|epsilon|eta|kappa|lambda|mu|nu|omega|phi|psi|rho|sigma|tau|theta|chi|pi|Delta|Gamma|Lambda|Phi|Sigma|Xi")
NAMES = re.compile(rf"(d?({GREEK})|d?[A-Zehkm][12]|inf|Re|Im|Shat|qhat|htilde|mhat|domega|dg|Tr|tr|sqrt|kappa[12]|x0|d1|d2|Tk)$")
FUNCTIONS = re.compile(r"(sum_?|int_?|PV|given|log|exp|max|min|det|diag|sign|softmax|width|infinity|position|weight|Var|mmse|aspect|dim|threshold|cutoff|exponent|vectors|values|estimate|previous)$")
TOKEN = re.compile(r"`[^`]*`|\"[^\"]*\"|\|\||<<|>>|->|<=|>=|!=|==|\+-|\.\.\.?|[A-Za-z]\w*(?:\.\w+)*|\d+(?:\.\d+)?(?:e-?\d+)?|\s+|.", re.S)
OPERATORS = set("= + - * / < > ^ ( ) [ ] { } , ' | << >> -> <= >= != == +- || _".split())
RELATIONS = set("= / < > <= >= != == -> + * ^ ||".split())


def kind(token):
    """N name or letter of a formula, f function, l letter, a article, 0 number, o operator, s space, x anything else."""
    if token.isspace():
        return "s"
    if NAMES.match(token) or re.fullmatch(rf"([A-Za-z]{{1,2}}|d?({GREEK})|Shat|qhat|htilde|kappa|mmse|position|weight|sum|int|label)\d?_\w+", token):
        return "N"
    if FUNCTIONS.match(token):
        return "f"
    if re.fullmatch(r"[A-Za-z]|d[a-zA-Z]", token) and token != "do":
        return "a" if token in "aAI" else "l"
    if re.fullmatch(r"\d.*", token):
        return "0"
    return "o" if token in OPERATORS else "x"


def formula_length(tokens):
    """How many of these tokens, from the first on, are one formula; 0 if they are none."""
    kinds = [kind(token) for token in tokens]
    end, depth = 0, 0
    while end < len(tokens) and kinds[end] != "x":
        token, before = tokens[end], kinds[end - 2] if end > 1 else ""
        if token in ")]}" and depth == 0 or token in (",", "|") and depth == 0:
            break
        if token == "'" and (end == 0 or kinds[end - 1] not in "Nl" and tokens[end - 1] != ")"):
            break
        apart = end > 1 and kinds[end - 1] == "s" and tokens[end - 2] not in OPERATORS
        operated = end + 2 < len(tokens) and (tokens[end + 1] in RELATIONS or kinds[end + 1] == "s" and tokens[end + 2] in RELATIONS)
        if apart and depth == 0 and (kinds[end] in "0a" and not operated or kinds[end] == "f" and tokens[end + 1:end + 2] != ["("] and not operated):
            break
        if token in "([{" and end > 1 and kinds[end - 1] == "s" and before == "0":
            break
        depth += (token in "([{") - (token in ")]}")
        end += 1
    while end:  # no operator, space or open bracket at the end
        open_at = []
        for k, token in enumerate(tokens[:end]):
            if token in "([{":
                open_at.append(k)
            elif token in ")]}" and open_at:
                open_at.pop()
        if open_at:
            end = open_at[0]
        elif tokens[end - 1] == "||" and tokens[:end].count("||") % 2 == 0 or tokens[end - 2:end] == ["_", "+"]:
            break
        elif kinds[end - 1] == "s" or tokens[end - 1] in OPERATORS - set(")]}'"):
            end -= 1
        else:
            break
    run, of_run = tokens[:end], kinds[:end]
    names = any(k == "N" for k in of_run)
    related = any(t in RELATIONS for t in run) and any(k in "Nlf" for k in of_run)
    return end if run and of_run[0] != "a" and (names or related) and (names or not re.fullmatch(r"[A-Za-z]+/[A-Za-z]{3,}", "".join(run))) else 0


def words_as_code(line, escape=lambda token: re.sub(r"([_*\\])", r"\\\1", token).replace("<", "&lt;"), begin="`", end="`", inside=str):
    """Markdown of a line; `escape` is for what is not code, `inside` for what is, between `begin` and `end`."""
    line = re.sub(r"(?<![`\w])([dnTLKr]|T\^2)( x (T\^2|L K|[dnTLKr]\b|\d))+", lambda m: f"`{m[0]}`", line)
    tokens, result, i = TOKEN.findall(line), "", 0
    while i < len(tokens):
        starts = kind(tokens[i]) in "Nfl0" or tokens[i] in ("-", "(", "||", "[") and i + 1 < len(tokens) and kind(tokens[i + 1]) in "Nfl0"
        length = formula_length(tokens[i:]) if starts and not re.search(r"\w$", result) else 0
        if not length and re.fullmatch(r"[A-Za-z]\w*", tokens[i]) and tokens[i + 1:i + 2] == ["("]:  # a function of a formula
            inner = formula_length(tokens[i + 1:])
            length = inner + 1 if inner else 0
        if length:
            formula = inside("".join(tokens[i:i + length])) + end
            joined = result.endswith(end + " ")  # two formulas in a row are one
            result = result[:-len(end) - 1] + " " + formula if joined else result + begin + formula
            i += length
        else:
            token = tokens[i]
            result += token if token[0] == "`" else escape(token)
            i += 1
    return result
