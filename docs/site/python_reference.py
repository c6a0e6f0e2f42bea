# SPDX-License-Identifier: MIT
"""Writes the reference of the Python module, from its docstrings and stubs: python_reference.py PAGE

A docstring is written for help(): its indented lines are formulas or code, its `>>>` lines examples, and formulas inside its
sentences are shown as code.
"""
import ast
import dataclasses
import inspect
import re
import sys
import textwrap
from pathlib import Path

import bayesaim
import bayesaim.plot
from formulas import words_as_code

PACKAGE = Path(bayesaim.__file__).parent
STUBS = {node.name: node for node in ast.parse((PACKAGE / "_core.pyi").read_text()).body if hasattr(node, "name")}
SECTIONS = {
    "Priors and laws": ["Prior", "Wishart", "Wigner", "PowerLaw", "UserSpectrum", "Bilinear", "Ginibre", "MultiHead", "make_prior", "prior_names",
                        "SpectralLaw", "AtomicLaw", "MarchenkoPasturLaw"],
    "Channels": ["Channel", "Softmax", "Linear", "Hardmax", "HardmaxSampled", "HardmaxAsPrinted", "DeepAttention", "DeepSequence", "make_channel",
                 "channel_names", "pair_scales", "log_normal_cdf", "inverse_mills_ratio"],
    "Theory": ["theory", "phase", "trajectory", "thresholds", "threshold", "samples"],
    "Spectra": ["Spectrum", "TrainedSpectrum", "mmse", "prior_free_entropy", "denoise", "goe"],
    "Data": ["Dataset", "generate", "read_dataset"],
    "Estimators": ["amp", "gradient_descent", "predict", "fit", "train", "erm", "over_ranks"],
    "Studies": ["Experiment", "read_experiment", "parse_experiment", "plan", "sweep", "merge", "rerun", "estimator_names"],
    "Results": ["Result", "TheoryCurve", "TrainedCurve", "PhaseDiagram", "Thresholds", "TrainedThresholds", "RequiredSamples", "AmpResult", "Descent",
                "DescentResult", "FitResult", "TrainingResult", "TrainingRuns", "Prediction", "Denoised", "JointlyDenoised", "PolynomialEstimator",
                "Encoded", "SweepPlan", "SweepResult", "RerunResult", "ConvergenceWarning"],
    "Versions and kernels": ["git_commit", "blas_threads"],
}
MODULES = {"layers": "Several layers", "plot": "Pictures", "testing": "Checks of your own models"}


def docstring(text):
    """Markdown of a docstring: paragraphs, formulas and examples."""
    lines, result, i = inspect.cleandoc(text).split("\n"), [], 0
    while i < len(lines):
        if lines[i].startswith(">>>"):
            language, stop = "python", (lambda line: not line.strip())
        elif lines[i].startswith("    "):
            language, stop = "text", (lambda line: not line.startswith("    "))
        else:
            paragraph = []
            while i < len(lines) and lines[i].strip() and not lines[i].startswith((">>>", "    ")):
                paragraph.append(lines[i].strip())
                i += 1
            if paragraph:
                result.append(words_as_code(" ".join(paragraph)))
            else:
                i += 1
            continue
        block = []
        while i < len(lines) and not stop(lines[i]):
            block.append(re.sub(r"^(>>>|\.\.\.) ?", "", lines[i]))
            i += 1
        result.append(f"```{language}\n{textwrap.dedent(chr(10).join(block))}\n```")
    return "\n\n".join(result)


def stub_signature(name, node):
    """`name(arguments) -> result` of a function of the stubs, without self."""
    node.args.args = [a for a in node.args.args if a.arg != "self"]
    returns = "" if node.returns is None or node.name == "__init__" else f" -> {ast.unparse(node.returns)}"
    return f"{name}({ast.unparse(node.args)}){returns}"


def signature(name, thing):
    if dataclasses.is_dataclass(thing):
        return None
    stub = STUBS.get(name)
    if isinstance(stub, ast.ClassDef):
        for node in stub.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                return stub_signature(name, node)
        return None
    if isinstance(stub, ast.FunctionDef) and not inspect.isfunction(thing):
        return stub_signature(name, stub)
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return None
    text = re.sub(r": '([^']*)'", r": \1", re.sub(r"-> '([^']*)'", r"-> \1", text))
    return name + re.sub(r"\b_core\.", "", text).replace("(self, ", "(").replace(" -> None", "")


def wrapped(text):
    """A long signature, one argument a line."""
    if len(text) <= 100:
        return text
    head, _, rest = text.partition("(")
    depth, parts, part = 0, [], ""
    for k, c in enumerate(rest):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        if depth < 0:
            return f"{head}(\n    " + ",\n    ".join(p.strip() for p in [*parts, part]) + f"\n{rest[k:]}"
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return text


def fields(cls):
    """The table of a result's fields, with the `#:` comments of the source."""
    own = [c for c in reversed(cls.__mro__) if dataclasses.is_dataclass(c)]
    rows = []
    for owner in own:
        for line in inspect.getsource(owner).split("\n"):
            match = re.match(r"    (\w+): ([^=#]+?)(?: = [^#]*)?(?:  #: (.*))?$", line)
            if match:
                kind = match[2].replace("|", r"\|")
                meaning = words_as_code(match[3] or "").replace("||", r"\|\|").replace(" | ", r" \| ")
                rows.append(f"| `{match[1]}` | {' or '.join(f'`{part.strip()}`' for part in kind.split(chr(92) + '|'))} | {meaning} |")
    return "| field | type | meaning |\n|---|---|---|\n" + "\n".join(rows) if rows else ""


def methods(name, cls):
    """Public methods and properties of a class, with what their docstrings say."""
    stub = {node.name: node for node in STUBS[name].body if isinstance(node, ast.FunctionDef)} if isinstance(STUBS.get(name), ast.ClassDef) else {}
    parts = []
    for key, value in vars(cls).items():
        if key.startswith("_") or dataclasses.is_dataclass(cls) and key in cls.__dataclass_fields__:
            continue
        value = value.__func__ if isinstance(value, staticmethod) else value
        text = inspect.getdoc(value) or ""
        text = re.sub(rf"^{key}\(.*\n?", "", text).strip()  # pybind11 begins with the signature
        if isinstance(value, property):
            shown = key
        elif key in stub:
            shown = stub_signature(key, stub[key])
        else:
            shown = signature(key, value) or f"{key}()"
        if not text:
            raise SystemExit(f"{name}.{key} has no docstring")
        parts.append(f"`{shown}`\n\n{textwrap.indent(docstring(text), '')}")
    return "\n\n".join(f"- {textwrap.indent(part, '    ').lstrip()}" for part in parts)


def entry(prefix, name, thing):
    text = inspect.getdoc(thing)
    if not text:
        raise SystemExit(f"{prefix}{name} has no docstring")
    text = re.sub(rf"^{name}\(.*\n?", "", text).strip()
    parts = [f"### `{prefix}{name}`"]
    shown = signature(name, thing)
    if shown:
        parts.append(f"```python\n{wrapped(shown)}\n```")
    parts.append(docstring(text))
    if inspect.isclass(thing):
        parts += [part for part in (fields(thing) if dataclasses.is_dataclass(thing) else "", methods(name, thing)) if part]
    return "\n\n".join(parts)


def public_names(module):
    return getattr(module, "__all__", None) or [n for n, v in vars(module).items() if inspect.isfunction(v) and not n.startswith("_")
                                                and v.__module__ == module.__name__]


def main(page):
    listed = {name for names in SECTIONS.values() for name in names} | set(MODULES)
    if listed - {"plot"} != set(bayesaim.__all__):
        raise SystemExit(f"names of the reference and of bayesaim.__all__ differ: {sorted(listed ^ set(bayesaim.__all__))}")
    parts = ["# Python reference", f"Version {bayesaim.__version__}, from the docstrings: `help(bayesaim.NAME)` shows the same. "
             "[Python](python.md) has examples of all of it, [Theory](theory.md) the formulas."]
    for title, names in SECTIONS.items():
        parts += [f"## {title}"] + [entry("", name, getattr(bayesaim, name)) for name in names]
    for name, title in MODULES.items():
        module = getattr(bayesaim, name)
        parts += [f"## {title}: `bayesaim.{name}`", docstring(module.__doc__)]
        parts += [entry(f"{name}.", inner, getattr(module, inner)) for inner in public_names(module)]
    Path(page).write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
