"""Sweeps on a Ray cluster.

>>> import clearway.ray
>>> sweep = clearway.ray.sweep("spray-study", out="/data/study")

The driver owns the folder of the sweep, and each run is a task of Ray: a process on some node, whose results come back through Ray's
object store. Workers need no shared file system, but the clearway of the driver. ``clearway sweep`` may work on the same folder meanwhile.
"""

from __future__ import annotations

import importlib
import mmap
import os
import pickle
import shutil
import tempfile
import time
from typing import Any

from . import __revision__, __version__, _clearway
from ._errors import ScenarioError
from ._scenario import Scenario, call_of, source_of
from ._sweep import PROGRAM, Progress, Sweep, finished

__all__ = ["ClusterError", "sweep"]


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"clearway.ray needs Ray: {error}\n  fix: pip install \"clearway[ray]\"", name=name) from error


_ray = _imported("ray")

# Seconds between two looks at the cluster, and longest wait for a result.
_LOOK, _WAIT = 1.0, 0.25


class ClusterError(RuntimeError):
    """Workers of the cluster cannot carry out runs of this driver."""


def sweep(
    plan: Scenario,
    *,
    out: str | os.PathLike[str] | None = None,
    shard: tuple[int, int] | None = None,
    yes: bool = False,
    in_flight: int | None = None,
    retries: int = 3,
    progress: Progress | None = None,
) -> Sweep:
    """Carries out the runs of a plan that are not done yet on a Ray cluster: the one that ``ray.init`` has connected to, or that it
    finds.

    :param plan: as :func:`clearway.sweep` takes it. Files that scenarios read have to be at the same path on all nodes.
    :param out: folder of the sweep, on the driver's machine; ``out/sweep-NAME`` without it.
    :param shard: ``(3, 10)`` does the third of ten equal parts.
    :param yes: more than 10000 runs are meant.
    :param in_flight: most runs that are submitted at once; twice the CPUs of the cluster without it.
    :param retries: how often a run is done again whose worker or node is lost. One that fails by itself is not.
    :param progress: called now and then with runs done, all runs, runs that failed, and the seconds that are left, or ``None``.
        What it raises ends the sweep.
    :raises ScenarioError: if the plan cannot be meant, or the folder is of another plan.
    :raises ClusterError: if a worker has no clearway, or another one than the driver.
    :raises Interrupted: at Ctrl-C; its ``result`` is the sweep of the runs that were done, and the same call goes on from there.
    :raises ResultError: if results cannot be written.
    """
    if in_flight is not None and in_flight < 1:
        raise ScenarioError(f"in_flight={in_flight}: no run could be submitted\n  fix: leave it out for twice the CPUs of the cluster")
    if retries < 0:
        raise ScenarioError(f"retries={retries}: not 0 or more\n  fix: leave it out for 3")
    source = source_of(plan, "plan")
    dispatcher = _clearway.NativeDispatcher(source, None if out is None else os.fspath(out), shard, yes)
    stopped: BaseException | None = None
    driver = _Driver(dispatcher, in_flight, retries)
    try:
        if not _ray.is_initialized():
            _ray.init()
        driver.drive(progress)
    except BaseException as exception:
        stopped = exception
        driver.cancel()
    return finished(dispatcher.end(call_of("ray.sweep", source)), stopped)


class _Cluster:
    """What there is of the cluster."""

    def __init__(self) -> None:
        self._looked = float("-inf")
        self.cpus = 1
        # Memory of the largest node, in bytes; `None` if nodes tell of none.
        self.memory: int | None = None

    def look(self) -> None:
        """Sees now and then which nodes are there."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        nodes = [node["Resources"] for node in _ray.nodes() if node["Alive"]]
        self.cpus = max(1, int(sum(node.get("CPU", 0) for node in nodes)))
        self.memory = max((int(node["memory"]) for node in nodes if node.get("memory")), default=None)


class _Driver:
    """Submits runs as tasks, and takes their results, one after the other."""

    def __init__(self, dispatcher: _clearway.NativeDispatcher, in_flight: int | None, retries: int) -> None:
        self._dispatcher = dispatcher
        self._in_flight = in_flight
        self._retries = retries
        self._cluster = _Cluster()
        # Reference of each task: place and scenario of its run, and the memory that was asked for.
        self._tasks: dict[Any, tuple[int, str, int | None]] = {}

    def drive(self, progress: Progress | None) -> None:
        """Goes on until all is done."""
        task = _ray.remote(_task())
        while True:
            self._cluster.look()
            self._submit_again(task)
            self._submit(task)
            if progress is not None:
                progress(*self._dispatcher.progress(self._cluster.cpus))
            if self._dispatcher.is_over():
                return
            if self._tasks:
                # Results stay where they are until it is their turn.
                ready, _ = _ray.wait(list(self._tasks), num_returns=1, timeout=_WAIT, fetch_local=False)
                for reference in ready:
                    self._take(reference)
            else:
                # Other processes are at what is left.
                time.sleep(_WAIT)
            self._dispatcher.tick()

    def cancel(self) -> None:
        """Ends what is under way."""
        for reference in self._tasks:
            _ray.cancel(reference)
        self._tasks.clear()

    def _submit(self, task: Any) -> None:
        most = self._in_flight or 2 * self._cluster.cpus
        while len(self._tasks) < most:
            run = self._dispatcher.take()
            if run is None:
                return
            self._start(task, *run)

    def _start(self, task: Any, place: int, scenario: str, memory: int) -> None:
        # More than any node has would never be scheduled.
        asked = None if self._cluster.memory is None else min(memory, self._cluster.memory)
        options = task.options(num_cpus=1, memory=asked, max_retries=self._retries, retry_exceptions=[ChildProcessError])
        reference = options.remote(scenario, __version__, __revision__)
        self._tasks[reference] = (place, scenario, asked)

    def _submit_again(self, task: Any) -> None:
        """Submits with less memory what no node has the memory for, now that the largest is gone."""
        largest = self._cluster.memory
        too_large = [task for task, (_, _, asked) in self._tasks.items() if asked and largest and asked > largest]
        for reference in too_large:
            place, scenario, asked = self._tasks.pop(reference)
            _ray.cancel(reference)
            self._start(task, place, scenario, asked or 0)

    def _take(self, reference: Any) -> None:
        """Takes what came of a run."""
        place, scenario, _ = self._tasks.pop(reference)
        try:
            end, reason, files, node = _ray.get(reference)
        except _ray.exceptions.RuntimeEnvSetupError as error:
            raise ClusterError(f"the environment of the workers cannot be made: {error}") from error
        except _ray.exceptions.RayError as error:
            self._dispatcher.fail(place, _reason(error))
            return
        if end == "other":
            raise ClusterError(reason)
        if end == "refused" and _is_accepted(scenario):
            reason += f"\n  on the node {node} alone: files that scenarios name have to be at the same path on all nodes"
        if end != "results":
            self._dispatcher.fail(place, reason)
            return
        folder = self._dispatcher.folder(place)
        for name, contents in files:
            with open(os.path.join(folder, os.path.basename(name)), "wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
        self._dispatcher.done(place)


def _is_accepted(scenario: str) -> bool:
    """True if the scenario can be meant on this machine."""
    try:
        _clearway.check(("the scenario", scenario), [])
    except ScenarioError:
        return False
    return True


def _reason(error: Any) -> str:
    """Why Ray has no result, in one line."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[0] if lines else 'no reason given'}"


def _task() -> Any:
    """What a worker does. It is sent as it is, so that a worker without clearway can say so."""

    def carry_out(scenario: str, version: str, revision: str) -> tuple[str, str, list[tuple[str, Any]], str]:
        try:
            import clearway
        except ImportError as error:
            own = f"no clearway ({error})"
        else:
            if (clearway.__version__, clearway.__revision__) == (version, revision):
                import clearway.ray

                return clearway.ray._carry_out(scenario)
            own = f"clearway {clearway.__version__} ({clearway.__revision__})"
        node = _ray.util.get_node_ip_address()
        what = f"the worker on {node} has {own}, and the driver has clearway {version} ({revision})"
        fix = 'install the same wheel on all nodes, or name it: ray.init(runtime_env={"pip": ["/path/of/the/wheel.whl"]})'
        return "other", f"{what}\n  fix: {fix}", [], node

    return carry_out


def _carry_out(scenario: str) -> tuple[str, str, list[tuple[str, Any]], str]:
    """Carries out a run on this node: how it ended, why there are no results, the files of the results, and the node."""
    work = os.fspath(_clearway.own_folder(tempfile.gettempdir()))
    try:
        end, reason = _clearway.carry_out(PROGRAM, work, "run", scenario)
        node = _ray.util.get_node_ip_address()
        if end == "killed":
            # Ray tries it again, perhaps on another node.
            raise ChildProcessError(f"killed by signal 9 on {node}: most likely the node had no memory left")
        return end, reason, _files(os.path.join(work, "run")) if end == "results" else [], node
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _files(folder: str) -> list[tuple[str, Any]]:
    """The files of a folder, which go into the object store without a copy in between."""
    files: list[tuple[str, Any]] = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            is_empty = os.fstat(file.fileno()).st_size == 0
            contents = b"" if is_empty else pickle.PickleBuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            files.append((name, contents))
    return files
