# SPDX-License-Identifier: MIT
"""Runs the code cells of every notebook in order, in a process of their own."""
import json
import pathlib

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


STRICT = "import warnings, bayesaim\nwarnings.simplefilter('error', bayesaim.ConvergenceWarning)\n"


def code_of(notebook):
    content = json.loads(notebook.read_text())
    assert content["nbformat"] == 4
    for cell in content["cells"]:
        assert not cell.get("outputs"), "notebooks are kept without outputs"
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def test_there_are_notebooks():
    assert [notebook.stem for notebook in NOTEBOOKS] == ["hardmax_correction", "my_own_channel", "my_own_data", "read_a_head"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(script, notebook, tmp_path):
    cells = list(code_of(notebook))
    assert 4 <= len(cells) <= 10
    script(STRICT + "\n".join(cells), tmp_path)
