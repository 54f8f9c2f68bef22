"""Notebooks are committed as executed: every cell, in order, without errors. nbmake executes them afresh."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_executed_in_order(path):
    cells = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_ends_by_asserting_what_it_says(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert "import gaussnoise as gn" in "".join("".join(c["source"]) for c in cells[:2])
    assert "assert" in "".join(cells[-1]["source"])
