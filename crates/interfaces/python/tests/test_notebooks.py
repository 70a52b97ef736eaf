"""The notebooks: stored without outputs, and executed at small size."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
NAMES = ["own-controller", "window-and-spraying"]
NEEDED = ["IPython", "ipykernel", "matplotlib", "nbclient", "pandas", "pyarrow"]


def test_there_are_no_others():
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_they_are_kept_without_outputs(name):
    text = (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert notebook["metadata"] == {"kernelspec": kernel, "language_info": {"name": "python"}}
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
        assert max(map(len, cell["source"])) <= 141, cell["source"]


@pytest.mark.parametrize("name", NAMES)
def test_their_assertions_hold(name, tmp_path, monkeypatch):
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        what = f"SKIPPED (python): {name}.ipynb was NOT executed: there is no {', '.join(missing)}"
        pytest.fail(what) if os.environ.get("CI") else pytest.skip(what)
    import nbclient
    import nbformat

    monkeypatch.setenv("CLEARWAY_NOTEBOOK_SIZE", "small")
    # The kernel of this environment, and nothing of the user's.
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3", resources=resources).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    figures = [output for cell in code for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(figures) >= 2
    assert [output.text for cell in code for output in cell.outputs if output.get("name") == "stderr"] == []
    assert code[-1].outputs or code[-2].outputs
