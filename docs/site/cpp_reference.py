# SPDX-License-Identifier: MIT
"""Writes the reference of the C++ headers that are promised, those of cmake/PublicHeaders.cmake, into a folder of pages:
reference-cpp.md, a list of the headers, and cpp/, made by Doxygen. cpp_reference.py FOLDER

As a filter of Doxygen, `cpp_reference.py --filter HEADER`, it prints the header with each indented line of a comment, which is a formula
or a table, as a line of code.
"""
import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

from formulas import words_as_code

ROOT = Path(__file__).resolve().parents[2]
TITLES = {"": "Everything", "core": "Basics", "linalg": "Matrices", "spectral": "Laws of eigenvalues", "priors": "Priors", "denoisers": "Denoisers",
          "channels": "Channels", "losses": "Training losses", "model": "Models", "theory": "Theory", "data": "Data", "estimators": "Estimators",
          "figures": "Pictures", "testing": "Checks of your own models"}


def promised():
    """Paths below src, in the order of the list."""
    text = (ROOT / "cmake/PublicHeaders.cmake").read_text()
    names = re.search(r"set\(public_headers(.*?)\n\)", text, re.S)[1].split()
    return [f"bayesaim/{name}" for name in names]


def doxygen_code(text):
    """Inside <code>: no command, tag or link of Doxygen."""
    return re.sub(r"([@\\#%])", r"\\\1", html.escape(text, quote=False))


def filtered(text):
    # A comment above a namespace is about the file.
    text = re.sub(r"(?m)^((?:///.*\n)+)(?=namespace )", r"/// @file\n\1", text)
    lines, result, inside = text.split("\n"), [], False
    for line in lines:
        match = re.match(r"(\s*)///(   +)(\S.*)$", line)
        if match and not inside:
            result.append(f"{match[1]}/// @code{{.unparsed}}")
        if inside and not match:
            result.append(re.match(r"\s*", line)[0] + "/// @endcode")
        inside = bool(match)
        comment = re.match(r"(.*?///<? ?)(.*)$", line)
        if comment and not match and not comment[2].startswith("@"):
            line = comment[1] + words_as_code(comment[2], lambda token: re.sub(r"([<@\\#%])", r"\\\1", token), "<code>", "</code>", doxygen_code)
        result.append(line)
    return "\n".join(result)


def summary(header):
    """The first sentence of the first comment of a header."""
    text = (ROOT / "src" / header).read_text()
    comment = re.search(r"((?:^[ ]*//[/ ].*\n)+)", text.partition("#pragma once")[2], re.M)
    if not comment:
        names = re.findall(r"^using \w+(?:::\w+)*::(\w+);", text, re.M)
        if names:
            return "Names of another folder: " + ", ".join(f"`{name}`" for name in names) + "."
    if not comment:
        raise SystemExit(f"{header} has no comment")
    lines = [re.sub(r"^\s*///?\s?", "", line) for line in comment[1].strip().split("\n")]
    words = " ".join(line for line in lines if not line.startswith("  "))
    sentence = re.match(r"(.+?)(?<! al)(?<![. ])[.:](?=\s+[A-Z]|\s*$)", words)
    return words_as_code((sentence[1] if sentence else words).rstrip(":.,")).replace("|", r"\|") + "."


def page_name(header, folder):
    """Doxygen's name of the page of a file: its path, without folders that it needs not to be unique."""
    while True:
        name = re.sub(r"[./_]", lambda m: {".": "_8", "/": "_2", "_": "__"}[m[0]], header) + ".html"
        if (folder / name).exists():
            return name
        if "/" not in header:
            raise SystemExit(f"Doxygen has made no page of {header}")
        header = header.partition("/")[2]


def main(folder):
    headers = promised()
    version = re.search(r"VERSION ([\d.]+)\n", (ROOT / "CMakeLists.txt").read_text())[1]
    out = folder / "cpp"
    shutil.rmtree(out, ignore_errors=True)
    settings = (Path(__file__).parent / "Doxyfile").read_text()
    settings += f"PROJECT_NUMBER = {version}\nOUTPUT_DIRECTORY = {folder}\nSTRIP_FROM_PATH = {ROOT}/src\nSTRIP_FROM_INC_PATH = {ROOT}/src\n"
    settings += f'FILTER_PATTERNS = *.hpp="/usr/bin/python3 {Path(__file__).resolve()} --filter"\n'
    settings += "INPUT = " + " ".join(str(ROOT / "src" / header) for header in headers) + f" {Path(__file__).parent}/cpp_main.md\n"
    settings += f"USE_MDFILE_AS_MAINPAGE = {Path(__file__).parent}/cpp_main.md\n"
    subprocess.run(["doxygen", "-"], input=settings, text=True, check=True)

    parts = ["# C++ reference", f"The installed headers of version {version}, with what each is for; its page has every class and function. "
             "`bayesaim/bayesaim.hpp` includes them all. [Extending](extending.md) has examples, [Stability](stability.md) what is promised. "
             "[All classes and namespaces](cpp/annotated.html), by Doxygen. Formulas are as in the headers: `Shat` is $\\hat S$, `'` a transpose."]
    section = None
    for header in headers:
        part = header.split("/")[1] if header.count("/") > 1 else ""
        if part != section:
            section = part
            parts.append(f"## {TITLES[part]}\n\n| header | content |\n|---|---|")
        parts[-1] += f"\n| [`{header}`](cpp/{page_name(header, out)}) | {summary(header)} |"
    (folder / "reference-cpp.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "--filter":
        print(filtered(Path(sys.argv[2]).read_text()))
    else:
        main(Path(sys.argv[1]).resolve())
