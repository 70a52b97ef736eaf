"""Exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._compare import Comparison
    from ._result import Result
    from ._sweep import Sweep


class ScenarioError(ValueError):
    """Something that was written cannot be meant: the message of the command line, with the place and the fix."""


class ResultError(OSError):
    """Results that cannot be written. ``result`` has them, if a run was not kept where it should have been."""

    result: Result | None = None


class CollectiveError(ConnectionError):
    """A group of ranks that cannot be joined, or that has come to its end: a rank is lost, or has another key or another list."""


class Defect(RuntimeError):
    """An invariant of the simulator broke: a defect of Clearway, not of the scenario."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or the interrupt of a notebook, ended a run early.

    ``result`` has what was simulated until then: a :class:`Result` whose status is ``"interrupted"``, or the
    :class:`Comparison` or :class:`Sweep` of the runs that were done.
    """

    def __init__(self, result: Result | Comparison | Sweep | None) -> None:
        super().__init__("interrupted; `result` of this exception has what was simulated until then")
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        # Results stay in the process of their runs.
        return Interrupted, (None,)
