"""Runs: what they are given, what they give, how they end."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import clearway
import pytest

from conftest import SMALL

LONG = {"topology.hosts": 128, "workload.message": "1TB"}


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
    lossy = {"transport.kind": "rocev2", "switch.kind": "lossy"}
    (warning,) = clearway.check("incast-32", overrides=lossy)
    assert "made for lossless networks" in warning
    result = clearway.run("incast-32", overrides=lossy)
    assert result.warnings[0] == result.summary.warnings[0] == warning
    assert "made for lossless networks" in result._repr_html_()


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


def test_a_map_for_notebooks(small):
    page = small.map()
    assert 'id="fabric-map"' in page.html()
    shown = page._repr_html_()
    assert shown.count("<iframe") == 1 and 'sandbox="allow-scripts"' in shown
    # The page is an attribute of the frame: nothing of it is run by the notebook.
    assert "<script" not in shown
    unsampled = clearway.run("quickstart", overrides={**SMALL, "observe.series.every": "off"})
    with pytest.raises(clearway.ResultError, match="not sampled"):
        unsampled.map()


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
    # Long enough for many ticks on a fast machine, too.
    clearway.run("quickstart", overrides={"workload.message": "64MB"})
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


def test_saving_into_the_folder_of_a_run(tmp_path, monkeypatch):
    folder = tmp_path / "o"
    monkeypatch.chdir(tmp_path)
    result = clearway.run("quickstart", overrides=SMALL, out="o")
    assert result.folder == str(folder)
    assert not (folder / "report.html").exists()
    written = (folder / "summary.json").stat().st_mtime_ns
    result.save("o", report=False)
    assert (folder / "summary.json").stat().st_mtime_ns == written
    # With what was not asked for before.
    assert result.save("o") == str(folder)
    assert (folder / "report.html").exists()
    # Elsewhere by the same name.
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    result.save("o")
    assert (tmp_path / "sub/o/summary.json").exists()
    # After it was deleted, or another run took its place.
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(folder)
    result.save("o")
    assert (folder / "summary.json").exists()
    clearway.run("quickstart", overrides=SMALL, seed=2, out="o")
    result.save("o")
    assert json.loads((folder / "summary.json").read_text())["digest"] == result.digest


def test_captures_are_not_lost(tmp_path):
    result = clearway.run("quickstart", overrides={**SMALL, "observe.trace.pcap": ["host:3"]}, out=tmp_path / "o")
    names = sorted(path.name for path in (tmp_path / "o").iterdir())
    assert any(name.endswith(".pcapng") for name in names)
    result.save(tmp_path / "o", report=False)
    with pytest.raises(clearway.ResultError, match="would be lost(.|\n)*fix: "):
        result.save(tmp_path / "o")
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == names
    result.save(tmp_path / "other")


def test_dotted_keys_stand_at_the_top_too():
    assert clearway.resolve({"topology.hosts": 16}) == clearway.resolve({"topology": {"hosts": 16}})
    mixed = {"topology": {"hosts": 16}, "observe.series.every": "off", "topology.kind": "leaf-spine"}
    assert "hosts = 16" in clearway.resolve(mixed)
    with pytest.raises(clearway.ScenarioError, match="topology"):
        clearway.check({"topolgy.hosts": 16})


def test_empty_sections_are_not_passed_over():
    for given in [{"overrides": {"topolgy": {}}}, {"overrides": {"topology": {"hosts": 16, "hostss": {}}}}]:
        with pytest.raises(clearway.ScenarioError, match="(topolgy|hostss)(.|\n)*fix: "):
            clearway.check("quickstart", **given)
    with pytest.raises(clearway.ScenarioError, match="hostss(.|\n)*fix: "):
        clearway.check({"topology": {"hosts": 16, "hostss": {}}})
    with pytest.raises(clearway.ScenarioError, match="topolgy(.|\n)*fix: "):
        clearway.check({"topolgy": {}})
    clearway.check({"topology": {}})


def test_arrays_are_lists():
    numpy = pytest.importorskip("numpy")
    given = {"topology": {"hosts": numpy.array(16)}, "workload": {"kind": "flows", "flows": numpy.array(["0->1 1MB", "1->2 1MB"])}}
    assert len(clearway.run(given).flows) == 2


def test_paths_with_an_equals_sign_are_paths(small, tmp_path, monkeypatch):
    folder = tmp_path / "load=0.5"
    folder.mkdir()
    (folder / "scn").write_text(small.scenario)
    monkeypatch.chdir(tmp_path)
    given = clearway.resolve(small.scenario)
    assert clearway.resolve("load=0.5/scn") == given
    monkeypatch.chdir(folder)
    (folder / "x=1").write_text(small.scenario)
    assert clearway.resolve("x=1") == given
    with pytest.raises(clearway.ScenarioError, match="out/load=0.5/scn"):
        clearway.check("out/load=0.5/scn")
    assert clearway.resolve("topology.hosts=16") == clearway.resolve({"topology": {"hosts": 16}})


def test_what_goes_to_another_process(small):
    for what in (small, small.flows):
        with pytest.raises(TypeError, match="stays in the process(.|\n)*fix: "):
            pickle.dumps(what)
    assert pickle.loads(pickle.dumps(small.summary)) == small.summary
    assert pickle.loads(pickle.dumps(clearway.Interrupted(small))).result is None
