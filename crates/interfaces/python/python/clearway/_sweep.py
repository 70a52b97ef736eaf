"""Sweeps: one scenario at many points, each with several seeds."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Optional

from . import _clearway, _html
from ._document import Document
from ._errors import Interrupted, ScenarioError
from ._result import Summary
from ._scenario import Scenario, call_of, source_of
from ._table import Table

# What `python -m clearway` is started by.
PROGRAM = [sys.executable, "-m", "clearway"]

Progress = Callable[[int, int, int, Optional[float]], object]
"""Called with runs done, all runs, runs that failed, and the seconds that are left, if they are known."""


class Axis(NamedTuple):
    """What a plan varies."""

    key: str
    """Key of the scenario."""
    values: list[str]
    """Values as the plan gives them."""
    unit: str | None
    """Base unit of ``numbers``."""
    numbers: list[float] | None
    """The same values as numbers, if all are quantities."""


class Point(NamedTuple):
    """A point of a sweep."""

    values: dict[str, str]
    """Value of each axis."""
    runs: list[Summary]
    """Runs that are there, each with ``seed``, ``key`` and ``status``."""
    measures: dict[str, Summary]
    """Measures by name, each with ``per_seed``, ``mean``, ``mean_interval``, ``median``, ``min`` and ``max``."""


class Best(NamedTuple):
    """The best point by a measure, and how sure that is."""

    point: Point
    share_of_samples: float | None
    """In how many samples of the seeds it is the best (bootstrap); ``None`` with one seed."""
    alike: list[Point]
    """Points that the seeds do not tell apart from it."""
    left_out: int
    """Points that have runs which are not complete."""

    @property
    def values(self) -> dict[str, str]:
        """Value of each axis."""
        return self.point.values


class Group(NamedTuple):
    """Points that compete: those with the same values of what nobody chooses, such as message sizes and failures."""

    values: dict[str, str]
    """Value of each axis that is given."""
    points: list[Point]
    best: dict[str, Best]
    """The best of these points by each measure."""


class Failure(NamedTuple):
    """A run that failed."""

    values: dict[str, str]
    """Value of each axis."""
    seed: int
    key: str
    reason: str


class Sweep(Document):
    """What is there of a sweep: ``print(sweep)`` shows the table of the command line."""

    def __init__(self, native: _clearway.NativeSweep) -> None:
        super().__init__(native.document())
        self._native = native

    @property
    def folder(self) -> str:
        """Folder of the sweep: the same plan in the same folder does only what is missing."""
        return os.fspath(self._native.folder())

    @property
    def table(self) -> Table:
        """A row for each run: axes, seed, status and measures, as in ``sweep.parquet``."""
        return Table("runs", self._native.table())

    @property
    def axes(self) -> list[Axis]:
        """What the plan varies."""
        return [Axis(axis.key, axis["values"], axis.unit, axis.numbers) for axis in self.document.axes]

    @cached_property
    def points(self) -> list[Point]:
        """Points in the order of the plan."""
        return [Point(point["values"], point.runs, point.measures) for point in self.document.points]

    @property
    def best(self) -> dict[str, Best]:
        """The best point by each measure: ``sweep.best["slowdown.p99"].values``."""

        return self._bests(self.document.best)

    @property
    def groups(self) -> list[Group]:
        """Groups of points that compete, each with its best ones; none where all points compete."""
        groups = self.document.get("groups", [])
        return [Group(group["values"], [self.points[place] for place in group.points], self._bests(group.best)) for group in groups]

    def _bests(self, bests: Summary) -> dict[str, Best]:
        def best_of(best: Summary) -> Best:
            alike = [self.points[place] for place in best.alike]
            return Best(self.points[best.point], best.share_of_samples, alike, best.left_out)

        return {name: best_of(best) for name, best in bests.items()}

    @property
    def assertions(self) -> list[Summary]:
        """Assertions of the plan, each with ``text``, ``verdict``, ``reason`` and ``cases``; none while runs are missing."""
        return list(self.document.assertions)

    @property
    def failures(self) -> list[Failure]:
        """Runs that failed. The same call tries them again."""
        return [Failure(run["values"], run.seed, run.key, run.reason) for run in self.document.failures]

    @property
    def missing(self) -> int:
        """Runs of the plan that are not done yet."""
        return int(self.document.missing)

    @property
    def passed(self) -> bool:
        """True if no run is missing, none failed, and all assertions hold."""
        holds = all(assertion.verdict == "pass" for assertion in self.assertions)
        return not self.missing and not self.failures and holds

    def __repr__(self) -> str:
        return f"<clearway.Sweep {self.document.name}: {', '.join(_html.of_sweep(self))}, in {self.folder}>"

    def _repr_html_(self) -> str:
        return _html.sweep(self)


def sweep(
    plan: Scenario,
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    shard: tuple[int, int] | None = None,
    yes: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Carries out the runs of a plan that are not done yet, as ``clearway sweep`` does: each is a process of its own.

    :param plan: a built-in name (``clearway.list("plans")``), a path, a TOML text or a dictionary. Files that a text or a dictionary
        names are relative to the working directory.
    :param out: folder of the sweep, which several processes may share; ``out/sweep-NAME`` without it.
    :param jobs: maximum number of runs at once; without it the number of cores, or fewer if memory does not suffice.
    :param shard: ``(3, 10)`` does the third of ten equal parts.
    :param yes: more than 10000 runs are meant.
    :param progress: called now and then with runs done, all runs, runs that failed, and the seconds that are left, or ``None``.
        What it raises ends the sweep.
    :raises ScenarioError: if the plan cannot be meant, or the folder is of another plan.
    :raises Interrupted: at Ctrl-C; its ``result`` is the sweep of the runs that were done, and the same call goes on from there.
    :raises ResultError: if results cannot be written.

    Other Python threads go on meanwhile: the interpreter's lock is released.
    """
    if jobs is not None and not 1 <= jobs <= 1024:
        raise ScenarioError(f"jobs={jobs}: not from 1 to 1024\n  fix: leave it out for as many as there are cores")
    source = source_of(plan, "plan")
    folder = None if out is None else os.fspath(out)
    native, stopped = _clearway.sweep(source, folder, jobs, shard, yes, progress, PROGRAM, call_of("sweep", source))
    return finished(native, stopped)


def finished(native: _clearway.NativeSweep, stopped: BaseException | None) -> Sweep:
    """What is there, unless an exception ended it early."""
    swept = Sweep(native)
    if isinstance(stopped, KeyboardInterrupt):
        raise Interrupted(swept) from stopped
    if stopped is not None:
        raise stopped
    return swept
