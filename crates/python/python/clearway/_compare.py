"""Comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Union

from . import _clearway, _html
from ._document import Document
from ._errors import Interrupted, ScenarioError
from ._result import Result, Summary
from ._run import run
from ._scenario import Overrides, Scenario

Variant = Union[Scenario, tuple[Scenario, type], Result, Iterable[Result]]


class Comparison(Document):
    """Variants side by side, as ``clearway compare`` lays them: ``print(comparison)`` shows its table."""

    def __init__(self, results: dict[str, list[Result]], document: tuple[str, str, str]) -> None:
        super().__init__(document)
        self.results = results
        """Results of each variant, one for each seed."""

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
    threads: int = 1,
    overrides: Overrides = None,
) -> Comparison:
    """Compares scenarios and results; the first is what ratios refer to.

    :param variants: by label, scenarios that are run, scenarios with a controller of your own as in ``(scenario, Controller)``, or
        results that are there.
    :param seeds: so many seeds from 1 on, or these; without it each scenario has its own.
    :param threads: worker threads of each run.
    :param overrides: of all scenarios.
    :raises Interrupted: at Ctrl-C; its ``result`` is the comparison of the seeds that were done, or ``None``.
    """
    if not variants:
        raise ScenarioError("there is nothing to compare\n  fix: give variants, such as {'a': 'quickstart', 'b': result}")
    wanted = _seeds(seeds)
    done: dict[str, list[Result]] = {label: [] for label in variants}
    scenarios: dict[str, tuple[Scenario, Any]] = {}
    for label, variant in variants.items():
        if isinstance(variant, Result):
            done[label] = [variant]
        elif isinstance(variant, (list, tuple)) and variant and all(isinstance(item, Result) for item in variant):
            done[label] = list(variant)
        elif isinstance(variant, tuple) and len(variant) == 2:
            scenarios[label] = variant  # type: ignore[assignment]
        else:
            scenarios[label] = (variant, None)  # type: ignore[assignment]
    try:
        for seed in wanted:
            for label, (scenario, controller) in scenarios.items():
                done[label].append(run(scenario, seed=seed, threads=threads, overrides=overrides, controller=controller))
    except Interrupted as interrupted:
        some = {label: results for label, results in done.items() if results}
        raise Interrupted(_laid(some, complete=False) if some else None) from interrupted
    return _laid(done, complete=True)


def _seeds(seeds: int | Iterable[int] | None) -> list[int | None]:
    if seeds is None:
        return [None]
    wanted: list[int | None] = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    if not wanted:
        raise ScenarioError("there are no seeds\n  fix: give a number above 0, or a list of seeds")
    return wanted


def _laid(done: dict[str, list[Result]], *, complete: bool) -> Comparison:
    variants = [(label, [result._native for result in results]) for label, results in done.items()]
    return Comparison(done, _clearway.compare(variants, f"clearway.compare({list(done)!r})", complete))
