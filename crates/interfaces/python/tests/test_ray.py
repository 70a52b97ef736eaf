"""Sweeps on a Ray cluster: a real one of two nodes on this machine."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import clearway
import pytest

try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError as error:
    # Said where everybody sees it: a run without these tests is no test of `clearway.ray`.
    print(f"SKIPPED: sweeps on Ray are NOT tested: {error}", file=sys.__stderr__)
    pytest.skip(f"Ray is not installed: {error}", allow_module_level=True)

import clearway.ray

SMALL = {
    "name": "on-ray",
    "scenario": "quickstart",
    "set": {"topology.hosts": 16},
    "axes": {"transport.spray": ["single", "adaptive"], "workload.message": ["64MB", "256MB"]},
    "seeds": 10,
}
#: Runs of a second, a part of that on a fast machine: long enough to be found and killed.
LONG = {**SMALL, "name": "long", "axes": {"workload.message": ["512MB"]}, "seeds": 4}


@pytest.fixture(scope="module")
def cluster():
    os.environ["RAY_DEDUP_LOGS"] = "0"
    head = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def second(cluster):
    """Another node, which a test may kill."""
    node = cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    cluster.wait_for_nodes()
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node)


def table(sweep):
    """The table without what runs cost, byte for byte."""
    parquet = pytest.importorskip("pyarrow.parquet")
    found = parquet.read_table(Path(sweep.folder) / "sweep.parquet")
    return found.drop_columns(["wall_seconds", "cpu_seconds", "peak_rss_bytes"])


def written(folder):
    """When each run was put in place."""
    return {run.name: (run / "summary.json").stat().st_mtime_ns for run in (folder / "runs").iterdir()}


def children():
    """Processes that carry out runs for Ray: number and parent of each."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            status = (process / "status").read_text()
        except OSError:
            continue
        if b"carry-out" in words and any(b"clearway-" in word for word in words):
            parent = next(line for line in status.splitlines() if line.startswith("PPid:"))
            found[int(process.name)] = int(parent.split()[1])
    return found


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_a_killed_node_costs_nothing_but_time(cluster, second, tmp_path):
    parts = []

    def progress(done, total, failed, left):
        claims = len(list((tmp_path / "ray" / "claims").iterdir()))
        parts.append((done, claims, len(children())))
        # A node that was added begins to work after a while.
        both = max(running for _, _, running in parts) == 2
        if done >= 8 and both and second in cluster.worker_nodes:
            cluster.remove_node(second, allow_graceful=False)

    swept = clearway.ray.sweep(SMALL, out=tmp_path / "ray", in_flight=5, progress=progress)
    assert second not in cluster.worker_nodes
    assert swept.passed and len(swept.table) == 40 and len(written(tmp_path / "ray")) == 40
    assert parts[-1][:2] == (40, 0)
    # Never more than are allowed; both nodes had work before one was killed.
    assert max(claims for _, claims, _ in parts) == 5
    assert max(running for _, _, running in parts) == 2
    assert [done for done, _, _ in parts] == sorted(done for done, _, _ in parts)
    assert list((tmp_path / "ray" / "partial").iterdir()) == []
    local = clearway.sweep(SMALL, out=tmp_path / "local")
    assert table(swept).equals(table(local), check_metadata=True)
    assert {**swept.document, "command": ""} == {**local.document, "command": ""}
    assert swept.document.command == "clearway.ray.sweep(…)"
    # Nothing is left to do, for nobody.
    before = written(tmp_path / "ray")
    assert clearway.ray.sweep(SMALL, out=tmp_path / "ray").passed
    assert written(tmp_path / "ray") == before


def test_large_results_come_back_whole(cluster, tmp_path):
    poisson = {"workload.kind": "poisson", "workload.load": 0.3, "workload.duration": "3ms"}
    plan = {"scenario": "quickstart", "seeds": 2, "set": {"topology.hosts": 16, **poisson}}
    swept = clearway.ray.sweep(plan, out=tmp_path / "ray")
    local = clearway.sweep(plan, out=tmp_path / "local")
    assert swept.passed
    for run in (tmp_path / "local" / "runs").iterdir():
        theirs = tmp_path / "ray" / "runs" / run.name
        assert sorted(file.name for file in run.iterdir()) == sorted(file.name for file in theirs.iterdir())
        flows = (run / "flows.parquet").read_bytes()
        # More than what Ray sends beside the object store.
        assert len(flows) > 250_000 and flows == (theirs / "flows.parquet").read_bytes()
    assert local.passed


def test_a_run_that_fails_does_so_once_and_the_rest_goes_on(cluster, tmp_path):
    plan = {
        **SMALL,
        "set": {"topology.hosts-per-leaf": 4, "workload.message": "64KB"},
        "axes": {"topology.hosts": [16, 18]},
        "seeds": 2,
    }
    swept = clearway.ray.sweep(plan, out=tmp_path / "ray")
    local = clearway.sweep(plan, out=tmp_path / "local")
    assert [row["status"] for row in swept.table] == ["complete", "complete", "failed", "failed"]
    assert [failure.reason for failure in swept.failures] == [failure.reason for failure in local.failures]
    assert not swept.passed and swept.missing == 0


def test_a_worker_that_is_killed_is_replaced(cluster, tmp_path):
    done = []

    def kill():
        wait_for(children)
        ((child, worker),) = list(children().items())[:1]
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: child not in children())
        done.append(worker)

    thread = threading.Thread(target=kill)
    thread.start()
    swept = clearway.ray.sweep(LONG, out=tmp_path / "ray", in_flight=2)
    thread.join()
    assert done and swept.passed and len(swept.table) == 4


def test_when_ray_gives_up_the_run_has_failed(cluster, tmp_path):
    def kill():
        wait_for(children)
        os.kill(next(iter(children().values())), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    swept = clearway.ray.sweep(LONG, out=tmp_path / "ray", retries=0, in_flight=1)
    thread.join()
    (failure,) = swept.failures
    assert "WorkerCrashedError" in failure.reason
    assert [row["status"] for row in swept.table].count("complete") == 3


def test_a_child_that_is_killed_is_tried_again(cluster, tmp_path):
    def kill():
        wait_for(children)
        os.kill(next(iter(children())), signal.SIGKILL)

    for retries, complete in [(1, 4), (0, 3)]:
        thread = threading.Thread(target=kill)
        thread.start()
        swept = clearway.ray.sweep(LONG, out=tmp_path / str(retries), retries=retries, in_flight=1)
        thread.join()
        assert [row["status"] for row in swept.table].count("complete") == complete
        for failure in swept.failures:
            assert "killed by signal 9 on " in failure.reason and "no memory left" in failure.reason


def test_a_driver_that_is_killed_goes_on_from_there(cluster, tmp_path):
    script = (
        "import clearway.ray, ray\n"
        f"ray.init(address={cluster.address!r}, log_to_driver=False)\n"
        f"clearway.ray.sweep({LONG!r}, out={str(tmp_path / 's')!r})\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    wait_for(lambda: any((tmp_path / "s" / "runs").glob("*/summary.json")))
    driver.kill()
    driver.wait()
    wait_for(lambda: not children())
    before = written(tmp_path / "s")
    assert 0 < len(before) < 4 and any((tmp_path / "s" / "claims").iterdir())
    swept = clearway.ray.sweep(LONG, out=tmp_path / "s")
    assert swept.passed and len(swept.table) == 4
    assert before.items() <= written(tmp_path / "s").items()
    assert list((tmp_path / "s" / "claims").iterdir()) == []


def test_ctrl_c_keeps_what_is_done(cluster, tmp_path):
    def interrupt():
        wait_for(lambda: any((tmp_path / "s" / "runs").glob("*")))
        wait_for(children)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(clearway.Interrupted) as caught:
        clearway.ray.sweep(LONG, out=tmp_path / "s")
    thread.join()
    kept = caught.value.result
    assert 0 < len(kept.table) < 4 and kept.missing == 4 - len(kept.table)
    assert list((tmp_path / "s" / "claims").iterdir()) == []
    wait_for(lambda: not children())


def test_another_process_takes_other_runs(cluster, tmp_path):
    plan = {**SMALL, "seeds": 3}
    other = f"import clearway; clearway.sweep({plan!r}, out={str(tmp_path / 's')!r}, jobs=1)"
    process = subprocess.Popen([sys.executable, "-c", other])
    swept = clearway.ray.sweep(plan, out=tmp_path / "s", in_flight=1)
    assert process.wait() == 0
    assert swept.passed and len(swept.table) == 12


def test_another_clearway_on_the_workers_is_refused(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(clearway.ray, "__version__", "9.9.9")
    with pytest.raises(clearway.ray.ClusterError) as caught:
        clearway.ray.sweep(SMALL, out=tmp_path / "s")
    message = str(caught.value)
    assert f"has clearway {clearway.__version__} (" in message and "the driver has clearway 9.9.9 (" in message
    assert "fix: install the same wheel" in message
    assert list((tmp_path / "s" / "claims").iterdir()) == []


@pytest.mark.parametrize(("options", "what"), [({"in_flight": 0}, "in_flight=0"), ({"retries": -1}, "retries=-1")])
def test_wrong_options_are_refused(options, what, tmp_path):
    with pytest.raises(clearway.ScenarioError, match=what):
        clearway.ray.sweep(SMALL, out=tmp_path / "s", **options)


def test_without_ray_the_extra_is_named():
    script = "import sys; sys.modules['ray'] = None; import clearway.ray"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1 and 'pip install "clearway[ray]"' in done.stderr
