# SPDX-License-Identifier: MIT
"""Called by mkdocs: formulas become HTML when the manual is built, so that readers need neither network nor scripts."""
import html
import json
import re
import subprocess
from pathlib import Path

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)

NODE = """
const katex = require('/usr/share/nodejs/katex'), input = JSON.parse(require('fs').readFileSync(0));
console.log(JSON.stringify(input.formulas.map(([text, display]) => {
    try { return katex.renderToString(text, {displayMode: display, strict: 'error'}); }
    catch (error) { return {error: error.message, text}; }
})));
"""


def on_post_page(output, page, config):
    found = [(html.unescape(m[3]), m[2] == "[") for m in FORMULA.finditer(output)]
    if not found:
        return output
    answer = subprocess.run(["node", "-e", NODE], input=json.dumps({"formulas": found}),
                            capture_output=True, text=True, check=True).stdout
    rendered = json.loads(answer)
    for result in rendered:
        if isinstance(result, dict):
            raise SystemExit(f"{page.file.src_path}: formula {result['text']!r}: {result['error']}")
    parts = iter(rendered)
    return FORMULA.sub(lambda _: next(parts), output)


def plain(text):
    """A formula as searched for: words, no markup."""
    return re.sub(r"[\\{}]", "", re.sub(r"\\(math\w+|operatorname|tfrac|frac|lvert|rvert|Vert|left|right)\b", "", text))


def on_post_build(config):
    """The search index has formulas as plain text, and comes as a script too: browsers fetch nothing for pages that are files."""
    path = Path(config["site_dir"]) / "search/search_index.json"
    index = json.loads(path.read_text())
    for entry in index["docs"]:
        for field in ("title", "text"):
            entry[field] = re.sub(r"\\[(\[](.*?)\\[)\]]", lambda m: plain(m[1]), entry[field], flags=re.S)
    text = json.dumps(index)
    path.write_text(text)
    (path.parent / "search_index.js").write_text(f"var __search = {{index: Promise.resolve({text})}}\n")
