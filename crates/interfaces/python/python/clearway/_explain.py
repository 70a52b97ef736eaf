"""Names and what they mean."""

from __future__ import annotations

import builtins
from typing import NamedTuple

from . import _clearway, _html


class Parameter(NamedTuple):
    """A key of a scenario."""

    key: str
    default: str
    meaning: str
    values: str
    source: str


class Entry(NamedTuple):
    """Something that has a name."""

    name: str
    role: str
    summary: str
    parameters: builtins.list[Parameter]


class Explanation:
    """What a name means; ``print`` shows the text of the command line."""

    def __init__(self, name: str) -> None:
        entries, self.text = _clearway.explain(name)
        self.entries = [
            Entry(name, role, summary, [Parameter(*parameter) for parameter in parameters])
            for name, role, summary, parameters in entries
        ]

    @property
    def parameters(self) -> builtins.list[Parameter]:
        """Parameters of all that has the name."""
        return [parameter for entry in self.entries for parameter in entry.parameters]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return _html.explanation(self)


def explain(name: str) -> Explanation:
    """Explains a transport, controller, topology, workload, switch or section: every parameter with default, meaning and source.

    :raises ScenarioError: if nothing is called so; the message names what is.
    """
    return Explanation(name)


def list(group: str | None = None) -> dict[str, dict[str, str]] | dict[str, str]:  # noqa: A001
    """Names with a line on each: of a group such as ``"scenarios"``, or of all groups.

    :raises ScenarioError: if there is no such group.
    """
    if group is not None:
        return dict(_clearway.group(group))
    return {name: dict(_clearway.group(name)) for name in _clearway.groups()}


def show(name: str) -> str:
    """The text of a built-in scenario or plan, or of a file."""
    return _clearway.show(name)
