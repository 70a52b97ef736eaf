"""Comparisons."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from . import _clearway, _html
from ._controller import controller_of
from ._document import Document
from ._errors import Interrupted, ScenarioError
from ._result import Result, Summary
from ._run import check, run
from ._scenario import Overrides, Scenario

Variant = Union[Scenario, tuple[Scenario, type], Result, Iterable[Result]]


class Comparison(Document):
    """Variants side by side, as ``clearway compare`` lays them: ``print(comparison)`` shows its table."""

    def __init__(self, results: dict[str, list[Result]], document: tuple[str, str, str]) -> None:
        super().__init__(document)
        self.results = results
        """Results of each variant, one for each seed."""

    @property
    def answer(self) -> str | None:
        """By how much each variant is slower or faster than the first one, in a sentence; ``None`` of a single variant."""
        answer: str | None = self.document.answer
        return answer

    @property
    def measures(self) -> dict[str, dict[str, Summary]]:
        """Measures by name, each with ``per_seed``, ``median``, ``min``, ``max``, ``ratio`` and ``within_spread`` of each variant:
        ``comparison.measures["slowdown.p99"]["single"].median``."""
        labels = list(self.results)
        return {row.name: dict(zip(labels, row["values"])) for row in self.document.measures}

    @property
    def warnings(self) -> list[str]:
        """Why ratios may not mean what they seem to."""
        return list(self.document.warnings)

    def __repr__(self) -> str:
        return f"<clearway.Comparison of {', '.join(self.results)}>"

    def _repr_html_(self) -> str:
        return _html.comparison(self)


def compare(
    variants: Mapping[str, Variant],
    *,
    seeds: int | Iterable[int] | None = None,
    threads: int | None = None,
    overrides: Overrides = None,
) -> Comparison:
    """Compares scenarios and results; the first is what ratios refer to.

    :param variants: by label, scenarios that are run, scenarios with a controller of your own as in ``(scenario, Controller)``, or
        results that are there.
    :param seeds: so many seeds from 1 on, or these; without it each scenario has its own. They are of scenarios alone.
    :param threads: worker threads of each run, as those of :func:`clearway.run`.
    :param overrides: of all scenarios.
    :raises ScenarioError: if something cannot be meant; nothing has been run then.
    :raises Interrupted: at Ctrl-C; its ``result`` is the comparison of the seeds that were done, or ``None``.
    """
    if not isinstance(variants, Mapping) or not variants:
        raise ScenarioError("there is nothing to compare\n  fix: give variants, such as {'a': 'quickstart', 'b': result}")
    wanted = _seeds(seeds)
    done: dict[str, list[Result]] = {}
    scenarios: dict[str, tuple[Scenario, Any]] = {}
    for label, variant in variants.items():
        if not isinstance(label, str):
            raise ScenarioError(f"the label {label!r} is not text\n  fix: write it as {str(label)!r}")
        done[label] = []
        if isinstance(variant, (str, os.PathLike, Mapping)):
            scenarios[label] = (variant, None)
        elif isinstance(variant, tuple) and len(variant) == 2 and not isinstance(variant[0], Result):
            scenarios[label] = variant
        else:
            done[label] = _results(label, variant)
    if not scenarios and (seeds is not None or overrides is not None):
        fix = "leave `seeds` and `overrides` out, or compare scenarios"
        raise ScenarioError(f"results have their seeds and overrides already\n  fix: {fix}")
    for label, (scenario, controller) in scenarios.items():
        controller_of(controller, threads)
        _checked(label, scenario, wanted[0], overrides)
    try:
        for seed in wanted:
            for label, (scenario, controller) in scenarios.items():
                done[label].append(run(scenario, seed=seed, threads=threads, overrides=overrides, controller=controller))
    except Interrupted as interrupted:
        some = {label: results for label, results in done.items() if results}
        raise Interrupted(_laid(some, complete=False) if some else None) from interrupted
    return _laid(done, complete=True)


def _results(label: str, variant: Any) -> list[Result]:
    results = [variant] if isinstance(variant, Result) else list(variant) if isinstance(variant, Iterable) else []
    if not results or not all(isinstance(result, Result) for result in results):
        raise ScenarioError(f"`{label}` is no scenario and no result\n  fix: give a scenario, a result, or results of several seeds")
    return results


def _checked(label: str, scenario: Scenario, seed: int | None, overrides: Overrides) -> None:
    # Its seeds differ in nothing that could be wrong.
    try:
        check(scenario, seed=seed, overrides=overrides)
    except ScenarioError as error:
        raise ScenarioError(f"`{label}`: {error}") from None


def _seeds(seeds: int | Iterable[int] | None) -> list[int | None]:
    if seeds is None:
        return [None]
    wanted: list[int | None] = list(seeds) if isinstance(seeds, Iterable) else list(range(1, seeds.__index__() + 1))
    if not wanted:
        raise ScenarioError("there are no seeds\n  fix: give a number above 0, or a list of seeds")
    twice = [seed for index, seed in enumerate(wanted) if seed in wanted[:index]]
    if twice:
        raise ScenarioError(f"seed {twice[0]} comes twice\n  fix: name each seed once: its runs are equal")
    return wanted


def _laid(done: dict[str, list[Result]], *, complete: bool) -> Comparison:
    variants = [(label, [result._native for result in results]) for label, results in done.items()]
    return Comparison(done, _clearway.compare(variants, f"clearway.compare({list(done)!r})", complete))
