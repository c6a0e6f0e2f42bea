# SPDX-License-Identifier: MIT
"""Gathers the pages of the manual in a folder: docs/*.md, the pages of the root, pictures, styles and fonts. gather.py FOLDER"""
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KATEX = Path("/usr/share/javascript/katex")
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
TITLES = {"columns": "Columns", "errata": "Errata", "extending": "Extending", "guide": "the guide", "performance": "Performance",
          "python": "Python", "results": "Results", "scaling": "Scaling", "testing": "Testing", "theory": "Theory",
          "transformers": "Transformers", "tutorial": "Tutorial", "contributing": "Contributing", "stability": "Stability", "changelog": "the changelog"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def rewrite(match, folder, pages):
    """A link of a file in `folder`, as one of the manual. What is not in the manual is named, not linked."""
    picture, text, target = match.groups()
    if re.match(r"[a-z]+:|#", target):
        return match[0]
    path, hash_, anchor = target.partition("#")
    file = (folder / path).resolve()
    page = pages.get(file)
    if page:
        title = TITLES.get(Path(page).stem)
        if title and re.fullmatch(r"(\.\./|docs/)?[\w-]+\.md", text, re.I):
            text = title
        return f"{picture}[{text}]({page}{hash_}{anchor})"
    name = file.relative_to(ROOT).as_posix()
    return f"`{name}`" if text.strip("`") == name else f"{text} (`{name}`)"


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sources = {ROOT / name: page for name, page in PAGES.items()}
    sources.update({file: file.name for file in sorted((ROOT / "docs").glob("*.md"))})
    pages = {**sources, ROOT / "CITATION.cff": "CITATION.cff", ROOT / "docs/references.bib": "references.bib"}
    for picture in (ROOT / "docs/images").glob("*.png"):
        pages[picture] = f"images/{picture.name}"
    for source, page in sources.items():
        text = re.sub(r"(?ms)^<!-- test: .*?-->\n", "", source.read_text())
        text = re.sub(r"(?m)^```sh\n(?=\$ )", "```console\n", text)
        text = re.sub(r"(?m)^([^\s#|>-].*)\n(?=(\d+\.|-) )", lambda m: m[0] if re.match(r"\d+\. ", m[1]) else m[0] + "\n", text)
        parts = re.split(r"(?ms)(^```.*?^```$)", text)  # code keeps what looks like links
        text = "".join(p if p.startswith("```") else LINK.sub(lambda m: rewrite(m, source.parent, pages), p) for p in parts)
        (folder / page).write_text(text)
    for source, page in pages.items():
        if source not in sources:
            (folder / page).parent.mkdir(exist_ok=True)
            shutil.copy(source, folder / page)
    assets = folder / "assets"
    shutil.copytree(KATEX / "fonts", assets / "katex/fonts", ignore=shutil.ignore_patterns("*.ttf", "*.woff"))
    shutil.copy(KATEX / "katex.min.css", assets / "katex")
    for name in ("manual.css", "file_worker.js"):
        shutil.copy(Path(__file__).parent / name, assets)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
