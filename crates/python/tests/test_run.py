"""Runs: what they are given, what they give, how they end."""

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

from conftest import SMALL

LONG = {"topology.hosts": 128, "workload.message": "1GB"}


def test_a_scenario_is_a_name_a_path_a_text_or_a_dict(small, tmp_path):
    path = tmp_path / "saved.toml"
    path.write_text(small.scenario)
    assert clearway.run(path).digest == small.digest
    assert clearway.run(str(path)).digest == small.digest
    assert clearway.run(small.scenario).digest == small.digest
    given = {"name": "mine", "topology": {"hosts": 16}, "workload": {"kind": "permutation", "message": "2MB"}}
    result = clearway.run(given)
    assert result.summary.scenario.name == "mine"
    assert result.digest == clearway.run("name='mine'\n[topology]\nhosts=16\n[workload]\nkind='permutation'\nmessage='2MB'").digest


def test_seeds_and_overrides_count(small):
    other = clearway.run("quickstart", seed=2, overrides=SMALL)
    assert other.digest != small.digest
    assert other.summary.scenario.seed == 2
    as_texts = clearway.run("quickstart", overrides=["topology.hosts=32", "seed=2"], threads=2)
    nested = clearway.run("quickstart", overrides={"topology": {"hosts": 32}, "seed": 2})
    assert as_texts.digest == nested.digest == other.digest


def test_several_sections_of_a_workload():
    sections = [{"kind": "flows", "flows": ["0->1 1MB"]}, {"kind": "flows", "flows": ["2->3 2MB"]}]
    result = clearway.run({"topology": {"hosts": 16}, "workload": sections})
    assert result.flows.to_pydict()["bytes"] == [1_000_000, 2_000_000]


def test_the_result_says_what_was_run(small):
    assert (small.status, small.summary.flows.completed) == ("complete", 32)
    assert small.summary["digest"] == small.digest
    assert small.summary.slowdown.p99 >= 1
    assert small.summary["fct_us"]["max"] > small.summary["ideal_fct_us"]["max"]
    assert "hosts = 32" in small.scenario
    assert small.folder is None
    assert small.digest in repr(small)
    assert "32 of 32" in repr(small)
    assert "Slowdown" in str(small) or "slowdown" in str(small)
    with pytest.raises(AttributeError, match="it has: .*slowdown"):
        small.summary.slowdwon


def test_messages_are_those_of_the_command_line(tmp_path):
    def told(*arguments):
        command = [sys.executable, "-m", "clearway", "run", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 2
        return done.stderr.removeprefix("error: ").strip()

    for name, overrides in [("quickstrat", []), ("quickstart", ["topology.hots=3"]), ("quickstart", ["topology.hosts=-1"])]:
        settings = [word for text in overrides for word in ("--set", text)]
        with pytest.raises(clearway.ScenarioError) as caught:
            clearway.run(name, overrides=overrides)
        assert str(caught.value) == told(name, *settings)
        assert "fix: " in str(caught.value)
        assert isinstance(caught.value, ValueError)


def test_faults_in_a_dict_have_a_line():
    with pytest.raises(clearway.ScenarioError, match=r"the dict:4: .*`hots`(.|\n)*fix: .*hosts"):
        clearway.run({"seed": 1, "topology": {"hots": 3}})
    with pytest.raises(clearway.ScenarioError, match="of type object"):
        clearway.run({"topology": {"hosts": object()}})
    with pytest.raises(TypeError):
        clearway.run(7)
    with pytest.raises(clearway.ScenarioError, match="threads=0: (.|\n)*fix: "):
        clearway.run("quickstart", threads=0)


def test_values_are_those_of_toml():
    numpy = pytest.importorskip("numpy")
    given = {
        "name": 'a "name"\n',
        "observe": {"trace": {"pcap": ("host:3",)}, "series.every": "off"},
        "workload": [{"kind": "x", "n": numpy.int64(3), "f": numpy.float32(0.5), "yes": numpy.bool_(True)}, {"sizes": [1, 2.5]}],
        "seed": 7,
    }
    from clearway._scenario import to_toml

    tomllib = pytest.importorskip("tomllib")
    assert tomllib.loads(to_toml(given)) == {
        "name": 'a "name"\n',
        "seed": 7,
        "observe": {"trace": {"pcap": ["host:3"]}, "series": {"every": "off"}},
        "workload": [{"kind": "x", "n": 3, "f": 0.5, "yes": True}, {"sizes": [1, 2.5]}],
    }


def test_checks_need_no_run():
    assert clearway.check("quickstart") == []
    assert clearway.check("permutation-8k", overrides={"workload.message": "1TB"}) == []
    with pytest.raises(clearway.ScenarioError):
        clearway.check("quickstart", overrides={"transport.spray": "sinle"})
    assert "hosts = 32" in clearway.resolve("quickstart", overrides={"topology.hosts": 32})


def test_warnings_are_told():
    lossy = {"transport.kind": "rocev2"}
    (warning,) = clearway.check("incast-32", overrides=lossy)
    assert "made for networks without loss" in warning
    result = clearway.run("incast-32", overrides=lossy)
    assert result.warnings[0] == result.summary.warnings[0] == warning
    assert "made for networks without loss" in result._repr_html_()


def test_results_are_kept_in_a_folder(small, tmp_path):
    pyarrow_parquet = pytest.importorskip("pyarrow.parquet")
    kept = clearway.run("quickstart", overrides=SMALL, out=tmp_path / "kept", report=True)
    assert kept.folder == str(tmp_path / "kept")
    saved = Path(small.save(tmp_path / "saved"))
    names = sorted(path.name for path in saved.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert {"summary.json", "flows.parquet", "series.parquet", "scenario.toml", "report.html"} <= set(names)
    for name in ("flows.parquet", "series.parquet"):
        tables = [pyarrow_parquet.read_table(folder / name) for folder in (saved, tmp_path / "kept")]
        assert tables[0].equals(tables[1])
    assert (saved / "scenario.toml").read_text() == (tmp_path / "kept" / "scenario.toml").read_text()
    assert json.loads((saved / "summary.json").read_text())["digest"] == small.digest
    assert "clearway.run(&#39;quickstart&#39;" in kept.report_html() or "clearway.run('quickstart'" in kept.report_html()


def test_folders_of_others_are_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(clearway.ResultError, match="holds something other") as caught:
        clearway.run("quickstart", overrides=SMALL, out=tmp_path)
    assert isinstance(caught.value, OSError)
    assert caught.value.result.status == "complete"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_interrupt_keeps_what_there_is(tmp_path):
    timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as caught:
        clearway.run("quickstart", overrides=LONG, out=tmp_path / "part")
    assert time.monotonic() - started < 20
    assert isinstance(caught.value, clearway.Interrupted)
    result = caught.value.result
    assert result.status == "interrupted"
    assert len(result.flows) == 128
    assert json.loads((tmp_path / "part" / "summary.json").read_text())["status"] == "interrupted"


def test_progress_is_told_and_may_end_a_run():
    seen = []

    def progress(done, flows, microseconds):
        seen.append((done, flows, microseconds))
        if len(seen) == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        clearway.run("quickstart", overrides=LONG, progress=progress)
    assert [flows for _, flows, _ in seen] == [128] * 3
    assert seen[0][2] < seen[1][2] < seen[2][2]


def test_other_threads_go_on_meanwhile():
    ticks, over = [], threading.Event()

    def tick():
        while not over.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    clearway.run("quickstart")
    ended = time.monotonic()
    over.set()
    thread.join()
    assert sum(started < tick < ended for tick in ticks) >= (ended - started) / 0.1


def test_a_panic_is_a_defect(capfd):
    with pytest.raises(clearway.Defect, match="broken(.|\n)*report it"):
        clearway._clearway.break_down("broken")
    assert "broken" in capfd.readouterr().err


def test_incomplete_runs_are_results():
    result = clearway.run("quickstart", overrides={**SMALL, "stop.at-most": "5us"})
    assert result.status == "incomplete"
    assert None in result.flows.to_pydict()["finish_ps"]
