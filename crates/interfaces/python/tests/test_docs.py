"""The examples of the book and the README."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


def test_the_chapter(tmp_path, monkeypatch):
    for package in ("duckdb", "pandas", "polars", "pyarrow"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/src/python.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(examples) >= 6
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/src/python.md", "exec"), names)
    assert (tmp_path / "out/mine/summary.json").is_file()
    ring = [row["finish_ps"] for row in names["done"].flows]
    assert ring[0] < ring[1] < ring[2]


def test_the_readme(tmp_path):
    (example,) = re.findall(r"^python3 -c '(.*)'", (ROOT / "README.md").read_text(), re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "'slowdown': 1." in done.stdout
    assert list(tmp_path.iterdir()) == []
