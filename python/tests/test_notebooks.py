# SPDX-License-Identifier: MIT
"""Runs the code cells of every notebook in order, in a process of its own."""
import json
import pathlib
import subprocess
import sys

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def code_of(notebook):
    content = json.loads(notebook.read_text())
    assert content["nbformat"] == 4
    for cell in content["cells"]:
        assert not cell.get("outputs"), "notebooks are kept without outputs"
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def test_there_are_notebooks():
    assert [notebook.stem for notebook in NOTEBOOKS] == ["hardmax_correction", "my_own_channel", "my_own_data"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(notebook, tmp_path):
    cells = list(code_of(notebook))
    assert 4 <= len(cells) <= 10
    run = subprocess.run([sys.executable, "-c", "\n".join(cells)], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert run.returncode == 0, run.stderr
