"""Results of runs."""

from __future__ import annotations

import json
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from . import _html
from ._clearway import CAPTURES
from ._errors import ResultError
from ._table import Table

if TYPE_CHECKING:
    from ._clearway import Run


class Summary(dict[str, Any]):
    """Fields of ``summary.json``: a dictionary whose keys are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the summary has no `{name}`; it has: {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


class NetworkMap:
    """A map of the network: a page, which notebooks show in a frame."""

    def __init__(self, page: str) -> None:
        self._page = page

    def html(self) -> str:
        """The page, which needs nothing else."""
        return self._page

    def _repr_html_(self) -> str:
        return _html.frame(self._page)


class Result:
    """Result of a run: a summary, and tables for whoever reads Arrow.

    ``print(result)`` shows what the command line shows, and a notebook a short table.
    """

    def __init__(self, native: Run, folder: str | None) -> None:
        self._native = native
        self._folder = folder

    @cached_property
    def summary(self) -> Summary:
        """``summary.json``: ``result.summary.slowdown.p99``, ``result.summary["packets"]["dropped"]``."""
        summary = json.loads(self._native.summary_json(), object_hook=Summary)
        assert isinstance(summary, Summary)
        return summary

    @property
    def status(self) -> str:
        """``"complete"``, ``"incomplete"`` or ``"interrupted"``."""
        return str(self.summary.status)

    @property
    def digest(self) -> str:
        """Digest of the outcome: equal for any number of threads."""
        return str(self.summary.digest)

    @property
    def scenario(self) -> str:
        """The scenario with every default written out: run it again, and the result of a run that was not ended early is the same."""
        return self._native.resolved()

    @property
    def warnings(self) -> list[str]:
        """Warnings about the scenario and the run."""
        return self._native.warnings()

    @property
    def folder(self) -> str | None:
        """Folder in which the results are kept, if they are."""
        return self._folder

    @property
    def flows(self) -> Table:
        """A row for each flow."""
        return self._table("flows")

    @property
    def series(self) -> Table:
        """A row for each sample of a curve over time."""
        return self._table("series")

    @property
    def links(self) -> Table:
        """A row for each direction of each cable, with totals; none if nothing is sampled."""
        return self._table("links")

    @property
    def iterations(self) -> Table:
        """A row for each iteration of a job."""
        return self._table("iterations")

    @property
    def operations(self) -> Table:
        """A row for each operation of a scale-up fabric."""
        return self._table("operations")

    @property
    def jobs(self) -> list[Summary]:
        """Jobs, each with how long its iterations took: ``jobs`` of the summary."""
        return list(self.summary.jobs)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a result stays in the process of its run\n"
            "  fix: send `result.summary`, a table as `pyarrow.table(result.flows)`, or the path of a folder"
        )

    def _table(self, name: str) -> Table:
        return Table(name, self._native.table(name))

    def report_html(self) -> str:
        """The report, a page that needs nothing else."""
        return self._native.report_html()

    def map(self) -> NetworkMap:
        """The map of the network, which a notebook shows: what each link did, over the whole run or in an interval.

        :raises ResultError: if the run was not sampled (``observe.series.every=off``).
        """
        page = self._native.map_html()
        if page is None:
            raise ResultError(
                "the run was not sampled, so there is no map\n  fix: leave `observe.series.every` at its default"
            )
        return NetworkMap(page)

    def save(self, folder: str | os.PathLike[str], *, report: bool = True) -> str:
        """Puts the results into a folder, as the command line does, and returns its path. Those of another run give way.

        Captures and timelines are written by runs with ``out`` alone.

        :raises ResultError: if the folder holds something else, or captures of this run, or cannot be written.
        """
        path = os.path.abspath(os.fspath(folder))
        if self._is_in(path):
            if not report or os.path.exists(os.path.join(path, "report.html")):
                return path
            captures = [name for name in CAPTURES if os.path.exists(os.path.join(path, name))]
            if captures:
                raise ResultError(
                    f"{path}: {', '.join(captures)} would be lost: only a run writes such files\n"
                    "  fix: save into another folder, or give `report=True` to the run"
                )
        self._native.save(path, report)
        self._folder = self._folder or path
        return path

    def _is_in(self, path: str) -> bool:
        """True if the folder holds the results of this very run."""
        try:
            with open(os.path.join(path, "summary.json"), encoding="utf-8") as file:
                return bool(json.load(file) == self.summary)
        except (OSError, ValueError):
            return False

    def __str__(self) -> str:
        return self._native.summary_table()

    def __repr__(self) -> str:
        name = self.summary.scenario.name
        return f"<clearway.Result {name}: {', '.join(_html.in_brief(self.summary))}, digest {self.digest}>"

    def _repr_html_(self) -> str:
        return _html.result(self)
