"""Running and checking scenarios."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from . import _clearway
from ._controller import controller_of
from ._errors import Interrupted, ResultError
from ._result import Result
from ._scenario import Overrides, Scenario, call_of, overrides_of, source_of


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    threads: int | None = None,
    overrides: Overrides = None,
    out: str | os.PathLike[str] | None = None,
    report: bool = False,
    progress: Callable[[int, int, float], object] | None = None,
    controller: Any = None,
) -> Result:
    """Runs a scenario.

    :param scenario: a built-in name (``clearway.list("scenarios")``), a path, a TOML text or a dictionary.
    :param seed: seed of all random streams.
    :param threads: worker threads; results do not depend on them. Without it one, and as many as there are free processors when the
        run turns out to be long.
    :param overrides: keys with values, such as ``{"transport.spray": "oblivious"}``, or texts ``KEY=VALUE``.
    :param out: folder for the results; without it they stay in memory.
    :param report: ``report.html`` goes into the folder, too.
    :param progress: called now and then with flows done, all flows, and simulated microseconds. What it raises ends the run.
    :param controller: a class of your own as congestion controller; see :class:`clearway.Controller`.
    :raises ScenarioError: if something cannot be meant; the message names the place and the fix.
    :raises Interrupted: at Ctrl-C; its ``result`` has what was simulated until then.
    :raises ResultError: if the folder cannot be written; its ``result`` has what was simulated.
    :raises Defect: if the simulator itself fails.

    What ``controller`` raises ends the run, of which nothing is kept.

    Other Python threads go on meanwhile: the interpreter's lock is released.
    """
    source = source_of(scenario)
    keys, threads, named = controller_of(controller, threads)
    given = overrides_of(overrides, seed) + keys
    command = call_of("run", source, *([f"overrides={given!r}"] if given else []))
    folder = None if out is None else os.path.abspath(os.fspath(out))
    native, stopped, unkept = _clearway.run(
        source, given, threads, folder, report, progress, command, named
    )
    result = Result(native, None if unkept else folder)
    if isinstance(stopped, KeyboardInterrupt):
        raise Interrupted(result) from stopped
    if stopped is not None:
        raise stopped
    if isinstance(unkept, ResultError):
        unkept.result = result
    if unkept is not None:
        raise unkept
    return result


def check(scenario: Scenario, *, seed: int | None = None, overrides: Overrides = None) -> list[str]:
    """Puts the parts of a scenario together without a run, and returns the warnings about it.

    :raises ScenarioError: if something cannot be meant.
    :raises Interrupted: at Ctrl-C; its ``result`` is ``None``.
    """
    try:
        return _clearway.check(source_of(scenario), overrides_of(overrides, seed))
    except KeyboardInterrupt as interrupt:
        raise Interrupted(None) from interrupt


def resolve(scenario: Scenario, *, seed: int | None = None, overrides: Overrides = None) -> str:
    """The scenario as TOML with every default written out.

    :raises ScenarioError: if something cannot be meant.
    """
    return _clearway.resolve(source_of(scenario), overrides_of(overrides, seed))
