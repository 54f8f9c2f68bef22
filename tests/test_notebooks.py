"""Notebooks are committed as executed: every cell, in order, without errors. Here they are executed
afresh.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)

# negative controls: faults of cells, of a magic, of a figure, of the process; and what one leaves,
# another must not see
WRONG = {
    "fails": ["x = 1", "assert x == 2, 'found out'"],
    "is no Python": ["x = "],
    "has no such magic": ["%gaussnoise inline"],
    "cannot be drawn": [
        "%matplotlib inline\nimport matplotlib.pyplot as plt",
        "plt.plot([1])\nplt.title('$\\\\nothing$');",
    ],
    "exits": ["import os", "os._exit(3)"],
}
RIGHT = {
    "leaves": ["left = 1\nimport math\nmath.left = 2"],
    "finds nothing": ["import math\nassert not hasattr(math, 'left')"],
}


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """What is wrong with every notebook, by name."""
    folder, paths = tmp_path_factory.mktemp("notebooks"), list(NOTEBOOKS)
    for name, sources in (WRONG | RIGHT).items():
        paths.append(folder / f"{name}.ipynb")
        cells = [{"cell_type": "code", "source": [source]} for source in sources]
        paths[-1].write_text(json.dumps({"cells": cells}), encoding="utf-8")
    command = [sys.executable, Path(__file__).with_name("notebook_child.py"), *paths]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return {Path(path).name: fault for path, fault in json.loads(done.stdout).items()}


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 8


@pytest.mark.integration
@every_notebook
def test_runs_from_the_first_cell_to_the_last(path, faults):
    assert faults[path.name] == ""


@pytest.mark.integration
@pytest.mark.parametrize("name", WRONG)
def test_a_notebook_with_a_fault_is_found(name, faults):
    assert faults[f"{name}.ipynb"]


@pytest.mark.integration
@pytest.mark.parametrize("name", RIGHT)
def test_what_one_notebook_leaves_no_other_sees(name, faults):
    assert faults[f"{name}.ipynb"] == ""


@every_notebook
def test_executed_in_order(path):
    cells = [
        c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"
    ]
    assert [c["execution_count"] for c in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)


@every_notebook
def test_ends_by_asserting_what_it_says(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert "import gaussnoise as gn" in "".join("".join(c["source"]) for c in cells[:2])
    assert "assert" in "".join(cells[-1]["source"])
