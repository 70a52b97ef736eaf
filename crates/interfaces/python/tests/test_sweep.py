"""Sweeps."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import clearway
import pytest

SMALL = {
    "name": "small",
    "scenario": "quickstart",
    "seeds": 2,
    "set": {"topology.hosts": 16, "topology.hosts-per-leaf": 4},
    "axes": {"transport.spray": ["single", "adaptive"], "workload[0].message": ["64KB", "256KB"]},
}


def rows(sweep):
    """Rows of the table but what runs cost."""
    costs = ("wall_seconds", "cpu_seconds", "peak_rss_bytes")
    return [{name: value for name, value in row.items() if name not in costs} for row in sweep.table]


def command(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "clearway", *arguments], capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    calls = []
    folder = tmp_path_factory.mktemp("sweep") / "s"
    sweep = clearway.sweep(SMALL, out=folder, progress=lambda *now: calls.append(now))
    return sweep, calls


def test_a_sweep_has_a_table_points_and_the_best(swept):
    sweep, calls = swept
    assert sweep.passed and sweep.missing == 0 and sweep.failures == [] and sweep.assertions == []
    assert [axis.key for axis in sweep.axes] == ["transport.spray", "workload.message"]
    assert sweep.axes[1].unit == "bytes" and sweep.axes[1].numbers == [64000, 256000]
    assert len(sweep.points) == 4 and len(sweep.table) == 8
    row = sweep.table.to_pylist(0, 1)[0]
    assert row["transport.spray"] == "single" and row["workload.message"] == 64000 and row["seed"] == 1
    assert row["status"] == "complete"
    (point,) = (point for point in sweep.points if point.values == {"transport.spray": "single", "workload.message": "64KB"})
    assert point.measures["fct_us.max"].per_seed[0] == row["fct_us.max"]
    best = sweep.best["fct_us.max"]
    assert best.point.measures["fct_us.max"].mean == min(point.measures["fct_us.max"].mean for point in sweep.points)
    assert best.values["workload.message"] == "64KB" and 0 < best.share_of_samples <= 1
    assert [group.values for group in sweep.groups] == [{"workload.message": size} for size in sweep.axes[1].values]
    for group in sweep.groups:
        assert group.best["fct_us.max"].point in group.points
    assert calls[-1][:3] == (8, 8, 0)
    assert all(done <= total == 8 and (left is None or left >= 0) for done, total, _, left in calls)
    units = {column.name: column.unit for column in sweep.table.columns}
    assert units["workload.message"] == "bytes" and units["fct_us.max"] == "us" and units["wall_seconds"] == "s"
    assert "small" in repr(sweep) and "8 runs" in repr(sweep)
    page = sweep._repr_html_()
    assert "4 points" in page and "transport.spray" in page
    assert sweep.report_html() == (Path(sweep.folder) / "report.html").read_text()


def test_the_table_is_the_parquet_file(swept):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    sweep, _ = swept
    file = parquet.read_table(Path(sweep.folder) / "sweep.parquet").replace_schema_metadata(None)
    ours = pyarrow.table(sweep.table)
    assert ours.column_names == file.column_names
    assert ours.to_pylist() == file.to_pylist()


def test_the_command_line_does_the_same(swept, tmp_path):
    sweep, _ = swept
    again = clearway.sweep(SMALL, out=sweep.folder, jobs=1)
    assert again.document == sweep.document and rows(again) == rows(sweep)
    written = Path(sweep.folder) / "plan.toml"
    done = command("sweep", str(written), "--json", "--out", str(tmp_path / "theirs"))
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    assert {**theirs, "command": ""} == {**sweep.document, "command": ""}
    assert sweep.document.command == "clearway.sweep(…)"
    assert "8 of 8 runs are done" in command("sweep", str(written), "--out", sweep.folder).stderr


def test_plans_are_names_paths_texts_and_dicts(swept, tmp_path, monkeypatch):
    sweep, _ = swept
    monkeypatch.chdir(tmp_path)
    text = (Path(sweep.folder) / "plan.toml").read_text()
    (tmp_path / "mine.toml").write_text('[workload]\nkind = "permutation"\nmessage = "1MB"\n')
    relative = text.replace('"quickstart"', '"mine.toml"')
    (tmp_path / "plan.toml").write_text(relative.replace('name = "small"\n', ""))
    by_path = clearway.sweep(tmp_path / "plan.toml", shard=(1, 4))
    assert by_path.folder == os.path.join("out", "sweep-plan") and len(by_path.table) == 2
    assert by_path.missing == 6 and not by_path.passed
    by_text = clearway.sweep(relative, shard=(1, 4), out=by_path.folder)
    assert rows(by_text) == rows(by_path)
    assert by_path.document.command == f"clearway.sweep({str(tmp_path / 'plan.toml')!r})"


def test_everything_of_a_plan_can_be_a_dict(tmp_path):
    sampled = {
        "scenario": "quickstart",
        "set": SMALL["set"],
        "sample": {
            "method": "latin-hypercube",
            "points": 3,
            "ranges": {"workload.message": {"from": "64KB", "to": "256KB", "scale": "log"}, "transport.spray": ["single", "adaptive"]},
        },
        "point": [{"transport.kind": "rocev2"}, {"workload.message": "100KB", "transport.spray": "oblivious"}],
        "assert": [
            {"measure": "fct_us.max", "above": 1, "of": {"transport.spray": "oblivious"}},
            {"measure": "fct_us.max", "below": 0.001, "of": {"transport.spray": "oblivious"}},
        ],
        "seeds": [3, 4],
    }
    sweep = clearway.sweep(sampled, out=tmp_path / "s")
    assert len(sweep.points) == 5 and len(sweep.table) == 10
    assert [assertion.verdict for assertion in sweep.assertions] == ["pass", "fail"]
    assert not sweep.passed and sweep.missing == 0
    assert "1 of 2 assertions hold" in sweep._repr_html_()


def test_a_run_that_fails_is_told_and_the_rest_goes_on(tmp_path):
    limited = {**SMALL, "axes": {"topology.hosts": [16, 1_000_000]}, "set": {"workload.message": "64KB"}, "seeds": 1}
    script = (
        "import clearway, resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        f"sweep = clearway.sweep({limited!r}, out={str(tmp_path / 's')!r}, jobs=1)\n"
        "assert not sweep.passed and sweep.missing == 0\n"
        "(failure,) = sweep.failures\n"
        "assert failure.values == {'topology.hosts': '1000000'}, failure\n"
        "assert [row['status'] for row in sweep.table] == ['complete', 'failed']\n"
        "assert failure.reason in sweep._repr_html_() or 'signal' in failure.reason\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("plan", "options", "what"),
    [
        ({**SMALL, "axes": {"transport.spry": ["single"]}}, {}, "transport.spry"),
        ({**SMALL, "seed": 3}, {}, "a plan has no key `seed`"),
        ({**SMALL, "axes": {"transport.spray": []}}, {}, "the grid is empty"),
        ({**SMALL, "seeds": 100_000}, {}, "400000 runs"),
        (SMALL, {"shard": (0, 3)}, "counted from 1: 1/3 to 3/3"),
        (SMALL, {"jobs": 0}, "jobs=0"),
        ("spray-studdy", {}, "spray-study"),
    ],
)
def test_wrong_plans_are_refused(plan, options, what, tmp_path):
    with pytest.raises(clearway.ScenarioError) as caught:
        clearway.sweep(plan, out=tmp_path / "s", **options)
    assert what in str(caught.value) and "fix: " in str(caught.value)
    assert not (tmp_path / "s").exists()


def test_the_folder_of_something_else_is_refused(tmp_path, swept):
    (tmp_path / "mine").write_text("")
    with pytest.raises(clearway.ScenarioError, match="holds no sweep"):
        clearway.sweep(SMALL, out=tmp_path)
    with pytest.raises(TypeError, match="a plan is a name, a path, a TOML text or a dict"):
        clearway.sweep(b"spray-study")


#: 20 short runs, and 20 that do not end.
LONG = {**SMALL, "name": "long", "set": {"topology.hosts": 32}, "axes": {"workload.message": ["4MB", "1TB"]}, "seeds": 20}


def test_ctrl_c_keeps_what_is_done(tmp_path):
    def interrupt():
        while not any((tmp_path / "s" / "runs").glob("*")):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(clearway.Interrupted) as caught:
        clearway.sweep(LONG, out=tmp_path / "s")
    thread.join()
    kept = caught.value.result
    assert isinstance(kept, clearway.Sweep)
    assert 0 < len(kept.table) < 40 and kept.missing == 40 - len(kept.table)
    for folder in ("claims", "partial"):
        assert list((tmp_path / "s" / folder).iterdir()) == []


def test_an_exception_of_the_callable_ends_a_sweep(tmp_path):
    def progress(done, total, failed, left):
        raise RuntimeError(f"{total} are too many")

    with pytest.raises(RuntimeError, match="40 are too many"):
        clearway.sweep(LONG, out=tmp_path / "s", progress=progress)
    assert (tmp_path / "s" / "sweep.json").is_file()
