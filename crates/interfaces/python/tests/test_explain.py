"""Comparisons, plans, explanations, and the command line."""

import json
import os
import signal
import subprocess
import sys
import threading

import clearway
import pytest

from conftest import SMALL


def command(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "clearway", *arguments], capture_output=True, text=True, **options)


def test_comparisons_run_scenarios_and_take_results(small):
    single = {"topology": {"hosts": 32}, "transport": {"spray": "single"}, "workload": {"kind": "permutation", "message": "2MB"}}
    comparison = clearway.compare({"adaptive": small, "single": single}, seeds=2)
    assert [len(results) for results in comparison.results.values()] == [1, 2]
    measure = comparison.measures["fct_us.max"]
    assert measure["adaptive"].median == small.summary.fct_us.max
    assert measure["adaptive"].ratio == 1
    worst = [result.summary.fct_us.max for result in comparison.results["single"]]
    assert measure["single"].per_seed == worst
    assert measure["single"].ratio == pytest.approx(sum(worst) / 2 / small.summary.fct_us.max)
    assert "single" in str(comparison) and "fct_us.max" in comparison._repr_html_()
    assert comparison.answer.startswith("single is ") and comparison.answer in " ".join(str(comparison).split())
    assert "<html" in comparison.report_html()


def test_comparisons_are_those_of_the_command_line(tmp_path):
    ours = clearway.compare({"A": "quickstart", "B": "incast-32"}, seeds=[1])
    done = command("compare", "quickstart", "incast-32", "--json", "--quiet", "--out", str(tmp_path / "x.json"))
    theirs = json.loads((tmp_path / "x.json").read_text())
    assert done.returncode == 0
    values = [row["values"] for row in theirs["measures"]]
    assert [row["values"] for row in ours.document["measures"]] == values


def test_nothing_to_compare_is_refused():
    with pytest.raises(clearway.ScenarioError, match="nothing to compare"):
        clearway.compare({})
    with pytest.raises(clearway.ScenarioError, match="no seeds"):
        clearway.compare({"a": "quickstart"}, seeds=0)


def test_plans(tmp_path):
    plan = clearway.plan("vgg-pair")
    assert plan.verdict in ("compatible", "incompatible", "unknown")
    theirs = command("plan", "vgg-pair", "--json", "--out", str(tmp_path / "plan"))
    theirs = json.loads(theirs.stdout)
    assert [job.shift_us for job in plan.jobs] == [job["shift_us"] for job in theirs["jobs"]]
    assert plan.document.links == theirs["links"]
    with pytest.raises(clearway.ScenarioError, match="fix: "):
        clearway.plan("vgg-pear")
    with pytest.raises(clearway.ScenarioError, match="iterations=2"):
        clearway.plan("vgg-pair", iterations=2)


def test_explanations_are_those_of_the_command_line():
    explanation = clearway.explain("strack")
    assert str(explanation) == command("explain", "strack").stdout
    keys = [parameter.key for parameter in explanation.parameters]
    assert "transport.spray" in keys
    assert all(f"{parameter.key} = {parameter.default}" in str(explanation) for parameter in explanation.parameters)
    with pytest.raises(clearway.ScenarioError) as caught:
        clearway.explain("strak")
    assert f"error: {caught.value}\n" == command("explain", "strak").stderr


def test_names_are_listed():
    everything = clearway.list()
    assert "quickstart" in everything["scenarios"]
    assert clearway.list("scenarios") == everything["scenarios"]
    with pytest.raises(clearway.ScenarioError, match="there is no group `senarios`"):
        clearway.list("senarios")
    assert clearway.show("quickstart") == command("show", "quickstart").stdout


def test_the_command_line_is_whole(small, tmp_path):
    settings = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    done = command("run", "quickstart", *settings, "--json", "--out", "kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["digest"] == small.digest
    page = (tmp_path / "kept" / "report.html").read_text()
    assert "clearway run quickstart --set topology.hosts=32" in page
    assert command("run", "quickstrat").returncode == 2
    assert command("--version").stdout.split() == ["clearway", clearway.__version__]
    assert command("run", "quickstart", "--set", "stop.at-most=1us", cwd=tmp_path).returncode == 1


def test_the_types_are_declared():
    mypy = pytest.importorskip("mypy.api")
    out, err, code = mypy.run(["--strict", "--package", "clearway"])
    assert code == 0, out + err
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "clearway._clearway"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_sweeps_start_this_package_again(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('scenario = "quickstart"\nseeds = 2\n[set]\n"topology.hosts" = 32\n[axes]\n"transport.spray" = ["single", "adaptive"]\n')
    done = command("sweep", str(plan), "--out", str(tmp_path / "s"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 runs done now" in done.stderr
    document = json.loads((tmp_path / "s" / "sweep.json").read_text())
    (single, adaptive) = (point["measures"]["fct_us.max"]["per_seed"] for point in document["points"])
    assert adaptive == [clearway.run("quickstart", seed=seed, overrides=SMALL).summary.fct_us.max for seed in (1, 2)]
    assert max(adaptive) < min(single)


def test_what_cannot_be_compared_is_refused_before_anything_runs(small, monkeypatch):
    scenario = {"topology": {"hosts": 16}, "workload": {"kind": "permutation", "message": "10kB"}}
    broken = {"topology": {"hosts": -1}}

    def never(*_, **__):
        raise AssertionError("it was run")

    with monkeypatch.context() as patched:
        patched.setattr(sys.modules["clearway._compare"], "run", never)
        for variants, options, text in [
            ({16: scenario}, {}, "label 16 is not text"),
            ({"a": small}, {"seeds": 2}, "have their seeds"),
            ({"a": small}, {"overrides": {"seed": 1}}, "have their seeds"),
            ({"a": scenario}, {"seeds": [1, 1]}, "seed 1 comes twice"),
            ({"a": scenario, "b": broken}, {}, "`b`: "),
            ({"a": []}, {}, "no scenario and no result"),
            ({"a": [small, 3]}, {}, "no scenario and no result"),
            ({"a": 3}, {}, "no scenario and no result"),
            ("quickstart", {}, "nothing to compare"),
        ]:
            with pytest.raises(clearway.ScenarioError, match=f"{text}(.|\n)*fix: "):
                clearway.compare(variants, **options)
    generated = clearway.compare({"a": (result for result in [small]), "b": small})
    assert generated.results == {"a": [small], "b": [small]}
    numpy = pytest.importorskip("numpy")
    assert len(clearway.compare({"a": scenario}, seeds=numpy.int64(2)).results["a"]) == 2


def test_an_interrupt_of_a_plan_is_told_as_one():
    threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(clearway.Interrupted) as caught:
        clearway.plan("dumbbell-pair", simulate=True, iterations=100_000)
    assert caught.value.result is None


def test_a_run_that_is_not_complete_is_not_held_against_its_bound(tmp_path):
    settings = [word for key, value in {**SMALL, "stop.at-most": "5us"}.items() for word in ("--set", f"{key}={value}")]
    command("run", "quickstart", *settings, "--quiet", "--out", "short", cwd=tmp_path)
    done = command("why", "short", cwd=tmp_path)
    assert "The run is not complete." in done.stdout, done.stderr
    bound = json.loads((tmp_path / "short/why.json").read_text())["bound"]
    assert (bound["took_us"], bound["ratio"]) == (None, None)
    assert "The run took" not in (tmp_path / "short/report.html").read_text()
