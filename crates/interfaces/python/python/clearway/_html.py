"""HTML for notebooks: colours of the page around it, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._compare import Comparison
    from ._result import Result, Summary
    from ._sweep import Sweep
    from ._table import Table
    from ._explain import Explanation

# Rows of a table that are shown.
_ROWS = 10

_LINE = "border:0;border-bottom:1px solid color-mix(in srgb,currentColor 25%%,transparent)"
_CELL = f"padding:.15em .9em .15em 0;text-align:%s;vertical-align:top;background:none;color:inherit;{_LINE}"


def in_brief(summary: Summary) -> list[str]:
    """What a run came to, in a few words each."""
    words = [str(summary.status)]
    if "operations" in summary:
        done = summary.operations
        words.append(f"{done.completed:,} of {done.posted:,} operations")
    if summary.flows.total:
        words.append(f"{summary.flows.completed:,} of {summary.flows.total:,} flows")
    if summary.slowdown:
        words.append(f"slowdown {_number(summary.slowdown.p50)}, p99 {_number(summary.slowdown.p99)}")
    if summary.jobs_us:
        words.append(f"iteration {_number(summary.jobs_us.mean)} us")
    return words


def frame(page: str) -> str:
    """A page in a frame that cannot reach the notebook."""
    style = "width:100%;height:640px;border:0"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(page)}"></iframe>'


def result(result: Result) -> str:
    """A run in a few rows."""
    summary = result.summary
    rows: list[Sequence[Any]] = []
    for title, name in [("FCT", "fct_us"), ("Ideal FCT", "ideal_fct_us"), ("Slowdown", "slowdown"), ("Iterations", "jobs_us")]:
        spread = summary.get(name)
        if spread:
            unit = " (us)" if name.endswith("_us") else ""
            rows.append([title + unit, *(spread[key] for key in ("min", "mean", "p50", "p99", "max"))])
    if "operations" in summary and "latency_cycles" in summary.operations:
        spread = summary.operations.latency_cycles
        rows.append(["Latency (cycles)", *(spread.get(key) for key in ("min", "mean", "p50", "p99", "max"))])
    packets = summary.packets
    counts = [f"{packets[key]:,} {key}" for key in ("dropped", "retransmitted", "marked") if packets.get(key)]
    facts = [*in_brief(summary)[:2], f"simulated {_number(summary.simulated_us)} us", *counts, f"digest {result.digest}"]
    head = f"<b>{escape(summary.scenario.name)}</b> &middot; " + escape(" · ".join(facts))
    notes = "".join(f"<div>&#9888; {escape(warning)}</div>" for warning in result.warnings)
    return _block(head, _table(["", "min", "mean", "p50", "p99", "max"], rows) if rows else "", notes)


def rows(table: Table) -> str:
    """The first rows of a table."""
    shown = table.to_pydict(0, _ROWS)
    more = len(table) - _ROWS
    head = f"<b>{escape(table.name)}</b> &middot; {len(table):,} rows"
    notes = f"<div>&hellip; and {more:,} more</div>" if more > 0 else ""
    return _block(head, _table(list(shown), zip(*shown.values())), notes)


def comparison(comparison: Comparison) -> str:
    """Medians of what differs, and their ratios to the first variant."""
    labels = list(comparison.results)
    rows = []
    for name, spreads in comparison.measures.items():
        values = [spreads[label] for label in labels]
        if all(value.median is None for value in values) or all(value.ratio == 1 for value in values):
            continue
        rows.append([name, *(_with_ratio(value) for value in values)])
    notes = "".join(f"<div>&#9888; {escape(warning)}</div>" for warning in comparison.warnings)
    runs = max(map(len, comparison.results.values()))
    what = f"medians over {runs} runs each, and" if runs > 1 else "one run each, with"
    head = f"<b>Comparison</b> &middot; {what} ratios to the first"
    return _block(head, _table(["", *labels], rows), notes)


def of_sweep(sweep: Sweep) -> list[str]:
    """What is there of a sweep, in a few words each."""
    words = [f"{len(sweep.points):,} points", f"{len(sweep.table):,} runs"]
    if sweep.missing:
        words.append(f"{sweep.missing:,} missing")
    if sweep.failures:
        words.append(f"{len(sweep.failures):,} failed")
    if sweep.assertions:
        holding = sum(assertion.verdict == "pass" for assertion in sweep.assertions)
        words.append(f"{holding} of {len(sweep.assertions)} assertions hold")
    return words


def sweep(sweep: Sweep) -> str:
    """The table of a sweep with what is there of it."""
    head = f"<b>{escape(sweep.document.name)}</b> &middot; " + escape(" · ".join(of_sweep(sweep)))
    failures = "".join(f"<div>&#9888; {escape(failure.reason)}</div>" for failure in sweep.failures[:_ROWS])
    return _block(head, _text(str(sweep)), failures)


def explanation(explanation: Explanation) -> str:
    """Entries with their parameters."""
    parts = []
    for entry in explanation.entries:
        head = f"<b>{escape(entry.name)}</b> ({escape(entry.role)}): {escape(entry.summary)}"
        rows = [[p.key, p.default, p.meaning, p.values, p.source] for p in entry.parameters]
        parts.append(_block(head, _table(["key", "default", "meaning", "values", "source"], rows) if rows else ""))
    return "".join(parts)


def preformatted(title: str, text: str) -> str:
    """A text of the command line."""
    return _block(f"<b>{escape(title)}</b>", _text(text))


def _text(text: str) -> str:
    return f'<pre style="background:none;color:inherit;font-family:monospace">{escape(text)}</pre>'


def _with_ratio(value: Summary) -> str:
    if value.median is None:
        return ""
    ratio = "" if value.ratio in (None, 1) else f" ({value.ratio:.2f}x{', within the seeds' if value.within_spread else ''})"
    return _number(value.median) + ratio


def _block(head: str, *parts: str) -> str:
    return f'<div style="margin:.3em 0;color:inherit;overflow-x:auto"><div>{head}</div>{"".join(parts)}</div>'


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f'<th style="{_CELL % "left"}">{escape(name)}</th>' for name in names)
    body = "".join("<tr style=\"background:none\">" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f'<table style="border-collapse:collapse;color:inherit"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(value: Any) -> str:
    is_number = isinstance(value, (int, float))
    text = _number(value) if is_number else "" if value is None else escape(str(value))
    return f'<td style="{_CELL % ("right" if is_number else "left")}">{text}</td>'


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}"
