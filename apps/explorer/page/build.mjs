// SPDX-License-Identifier: MIT
// node build.mjs TSC ESBUILD OUTPUT.cpp: checks the types of the page, bundles it into one file of HTML, and writes that as C++.
// Formulas between dollar signs become MathML. NODE_PATH says where the modules are.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [tsc, esbuild, output] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const katex = createRequire(import.meta.url)("katex");

function run(program, ...options) {
    try {
        return execFileSync(program, options, { cwd: here, encoding: "utf8", maxBuffer: 1 << 26 });
    } catch (error) {
        process.stderr.write(error.stdout ?? String(error));
        process.exit(1);
    }
}

run(tsc, "--project", here);
const bundled = (file, ...options) =>
    run(esbuild, file, "--bundle", "--minify", "--charset=utf8", "--log-level=warning", ...options).trim();
const script = bundled("main.ts", "--format=iife", "--target=es2020").replaceAll("</script", "<\\/script");
const style = bundled("style.css");

const formula = (_, tex) =>
    katex
        .renderToString(tex, { output: "mathml", throwOnError: true, strict: "error" })
        .replace(/^<span class="katex">|<\/span>$/g, "")
        .replace(/<annotation.*?<\/annotation>/gs, "");
const html = readFileSync(join(here, "index.html"), "utf8")
    .replace(/\$([^$]+)\$/g, formula)
    .replace("<!-- style -->", () => `<style>${style}</style>`)
    .replace("<!-- script -->", () => `<script>${script}</script>`);

const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    "img-src data: blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
].join("; ");

mkdirSync(dirname(output), { recursive: true });
writeFileSync(
    output,
    `// Made by apps/explorer/page/build.mjs.
#include "explorer/page.hpp"

namespace bayesaim::explorer {
namespace {

constexpr unsigned char bytes[] = {${[...Buffer.from(html, "utf8")].join(",")}};

}  // namespace

std::string_view page() { return {reinterpret_cast<const char*>(bytes), sizeof bytes}; }
std::string_view page_policy() { return "${policy}"; }

}  // namespace bayesaim::explorer
`,
);
