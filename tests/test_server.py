"""What the page server takes from a folder of notebooks: their order, their names in links, and whose kernels stand ready."""

import nbformat
import pytest

from rlqueue.app.server import HEATED, ORDER, _title, heated, pages


def written(folder, name, heading="# A heading", **metadata):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(heading)], metadata=metadata)
    nbformat.write(made, folder / f"{name}.ipynb")
    return folder / f"{name}.ipynb"


def test_pages_come_in_the_order_of_their_links_and_strangers_last_by_name(tmp_path):
    for name in ("zebra", "report", "plan", "apple", "explorer"):
        written(tmp_path, name)
    assert [page.stem for page in pages(tmp_path)] == ["explorer", "plan", "report", "apple", "zebra"]


def test_kernels_are_kept_for_the_first_page_and_those_that_are_dragged(tmp_path):
    for name in (*ORDER, "zebra"):
        written(tmp_path, name)
    assert heated(tmp_path) == [f"{name}.ipynb" for name in HEATED]
    (tmp_path / "explorer.ipynb").unlink()
    assert heated(tmp_path) == [f"{name}.ipynb" for name in HEATED[1:]]


def test_a_folder_of_strangers_has_its_first_page_ready(tmp_path):
    written(tmp_path, "zebra")
    written(tmp_path, "apple")
    assert heated(tmp_path) == ["apple.ipynb"]


@pytest.mark.parametrize(
    ("metadata", "heading", "name"),
    [({"nav": "Short"}, "# Long", "Short"), ({}, "# Long\n\nwords", "Long"), ({}, "", "page")],
)
def test_a_page_is_linked_by_its_short_name_its_heading_or_its_file(tmp_path, metadata, heading, name):
    assert _title(written(tmp_path, "page", heading, **metadata)) == name
