# SPDX-License-Identifier: MIT
"""Checks the pages of the built manual: links, pictures, formulas, and that nothing comes from elsewhere. check.py FOLDER"""
import re
import struct
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

# Formulas that were not rendered, in text outside code: TeX, and the ASCII of docs for terminals.
RAW = re.compile(r"\\[a-zA-Z]{2,}|\$|\^|sqrt|\|\||\b(alpha|beta|lambda|rho|omega|kappa\d|Shat|qhat|htilde) = |\b[A-Za-z]_[A-Za-z]\w?\b|\w'[ )/](?=[A-Z]_?)|d x d")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.links, self.loaded, self.ids, self.pictures, self.text, self.hidden, self.stack = [], [], set(), [], [], 0, []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if values.get("id"):
            self.ids.add(values["id"])
        if tag == "a" and values.get("name"):
            self.ids.add(values["name"])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        for name in ("src", "srcset"):
            if values.get(name):
                self.loaded.append(values[name])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(values["href"])
        if tag == "img":
            self.pictures.append(values.get("src", ""))
        if tag not in VOID:
            secret = tag in ("code", "pre", "script", "style", "annotation", "title") or "katex" in (values.get("class") or "").split()
            self.stack.append((tag, secret))
            self.hidden += secret

    def handle_endtag(self, tag):
        while self.stack:
            name, secret = self.stack.pop()
            self.hidden -= secret
            if name == tag:
                break

    def handle_data(self, data):
        if not self.hidden:
            self.text.append(data)


def read(file):
    page = Page()
    page.feed(file.read_text())
    return page


def wrong_picture(file):
    """A picture that a browser would not show."""
    data = file.read_bytes()
    if file.suffix != ".png":
        return not data
    return data[:8] != b"\x89PNG\r\n\x1a\n" or min(struct.unpack(">II", data[16:24])) < 1 or data[-8:-4] != b"IEND"


def check_page(file, pages, root):
    page = pages[file]
    for target in page.links + page.loaded:
        if re.match(r"(https?:)?//", target):
            if target in page.loaded:
                yield f"loads {target} from elsewhere"
            continue
        if re.match(r"(mailto|javascript|data):", target):
            continue
        path, _, anchor = target.partition("#")
        other = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
        if not other.is_file():
            yield f"'{target}' leads to no file"
        elif anchor and anchor != "nested-classes" and other in pages and unquote(anchor) not in pages[other].ids:
            yield f"'{target}' leads to no place of its page"
    for picture in page.pictures:
        other = (file.parent / unquote(picture)).resolve()
        if other.is_file() and wrong_picture(other):
            yield f"picture '{picture}' is broken"
    if "cpp" not in file.relative_to(root).parts[:1]:  # comments of headers, as they are
        for line in " ".join(page.text).split("\n"):
            found = RAW.search(line)
            if found:
                yield f"raw formula '{line.strip()[max(0, found.start() - 40):found.end() + 40]}'"


def check(root):
    pages = {file.resolve(): read(file) for file in sorted(root.rglob("*.html")) if file.name != "404.html"}
    wrong = [f"{file.relative_to(root)}: {line}" for file in pages for line in check_page(file, pages, root)]
    for style in root.rglob("*.css"):
        for address in re.findall(r"url\(([^)]*)\)", style.read_text()):
            if address.strip("'\"").startswith("http"):
                wrong.append(f"{style.relative_to(root)}: loads {address} from elsewhere")
    return wrong, len(pages)


if __name__ == "__main__":
    found, count = check(Path(sys.argv[1]).resolve())
    if found:
        sys.exit("\n".join(found))
    print(f"{count} pages: links, pictures and formulas are right")
