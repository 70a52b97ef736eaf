"""Plans for jobs that share links."""

from __future__ import annotations

import os

from . import _clearway, _html
from ._document import Document
from ._errors import Interrupted, ScenarioError
from ._result import Summary
from ._scenario import threads_of


class Plan(Document):
    """Which jobs can share links, and how far to move each in time: ``print(plan)`` shows the table of the command line."""

    @property
    def verdict(self) -> str:
        """``"compatible"``, ``"incompatible"`` or ``"unknown"``."""
        return str(self.document.verdict)

    @property
    def jobs(self) -> list[Summary]:
        """Jobs, each with its ``shift_us``."""
        return list(self.document.jobs)

    def __repr__(self) -> str:
        return f"<clearway.Plan {self.document.name}: {self.verdict}, {len(self.jobs)} jobs>"

    def _repr_html_(self) -> str:
        return _html.preformatted(f"{self.document.name}: {self.verdict}", self._table)


def plan(
    jobs: str | os.PathLike[str],
    *,
    profile: bool = False,
    simulate: bool = False,
    iterations: int = 15,
    threads: int | None = None,
) -> Plan:
    """Plans training jobs that share links.

    :param jobs: a built-in plan (``clearway.list("plans")``) or the path of a file of jobs.
    :param profile: measure the phases of the jobs in the simulator first.
    :param simulate: try the plan in the simulator.
    :param iterations: iterations of each job in a simulation, at least 3.
    :param threads: worker threads of a simulation, as those of :func:`clearway.run`.
    :raises ScenarioError: if the file cannot be meant.
    :raises Interrupted: at Ctrl-C; its ``result`` is ``None``.
    """
    if not 3 <= iterations <= 100_000:
        raise ScenarioError(f"iterations={iterations}: not from 3 to 100000\n  fix: leave it out for 15")
    name = os.fspath(jobs)
    command = f"clearway.plan({name!r})"
    try:
        return Plan(_clearway.plan(name, profile, simulate, iterations, threads_of(threads), command))
    except KeyboardInterrupt as interrupt:
        raise Interrupted(None) from interrupt
