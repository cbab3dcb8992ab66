"""Each notebook is a page: a title and one cell, no outputs, no code of its own, and it runs."""

import ast
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def read(path):
    return nbformat.read(path, as_version=4)


def test_there_is_a_notebook():
    assert "explorer.ipynb" in [path.name for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_title_and_one_cell(path):
    notebook = read(path)
    nbformat.validate(notebook)
    title, code = notebook.cells
    assert (title.cell_type, code.cell_type) == ("markdown", "code")
    assert title.source.startswith("# ")
    assert notebook.metadata.title


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_no_outputs_and_defines_nothing(path):
    code = read(path).cells[1]
    assert code.outputs == []
    assert code.execution_count is None
    kinds = {type(each).__name__ for each in ast.walk(ast.parse(code.source))}
    assert not kinds & {"FunctionDef", "AsyncFunctionDef", "ClassDef", "Lambda"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_without_a_browser(path, tmp_path):
    notebook = read(path)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [output for output in notebook.cells[1].outputs if output.output_type == "display_data"]
    assert any("application/vnd.jupyter.widget-view+json" in output.data for output in shown)
    assert not [output for output in notebook.cells[1].outputs if output.output_type in {"error", "stream"}]
