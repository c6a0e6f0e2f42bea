# SPDX-License-Identifier: MIT
"""Checks the links of all markdown files: files and anchors exist, addresses of other sites are well formed. No network.

A heading's anchor is that of GitHub and of the manual, which must be the same for headings that are linked.
"""
import os
import re
import sys
from pathlib import Path

ROOT = Path(os.environ.get("BAYESAIM_SOURCE_DIR", Path(__file__).resolve().parents[2]))
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\](?:\(([^)\s]+)\)|\[(\w+)\])")
ADDRESS = re.compile(r"https://[a-z0-9.-]+\.[a-z]{2,}(/[\w./~%#?=&+,:;@-]*)?$")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"(?ms)^```.*?^```$|<!--.*?-->", "", text))


def anchors(text):
    """Anchors of the headings: those of GitHub that the manual has too."""
    found = set()
    for heading in re.findall(r"(?m)^#{1,6} (.+)$", re.sub(r"(?ms)^```.*?^```$", "", text)):
        words = re.sub(r"[^\w\s-]", "", heading.replace("`", "").lower()).strip()
        if words.replace(" ", "-") == re.sub(r"[-\s]+", "-", words):
            found.add(words.replace(" ", "-"))
    return found


def wrong_links(page, text):
    """What is wrong with the links of a page, one line each."""
    named = dict(re.findall(r"(?m)^\[(\w+)\]: (\S+)$", text))
    wrong = []
    for match in LINK.finditer(without_code(text)):
        target = match[1] or named.get(match[2], "")
        if re.match(r"[a-z]+:", target):
            if not ADDRESS.match(target):
                wrong.append(f"{page}: '{target}' is no address of the form https://..")
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not target or not file.exists() or not file.is_relative_to(ROOT):
            wrong.append(f"{page}: '{target or match[0]}' leads to no file of the project")
        elif anchor and anchor not in anchors(file.read_text()):
            wrong.append(f"{page}: '{target}' leads to no heading")
    return wrong


def pages():
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


if __name__ == "__main__":
    found = [line for page in pages() for line in wrong_links(page, page.read_text())]
    print("\n".join(found) or f"links of {len(pages())} pages are right")
    sys.exit(1 if found else 0)
