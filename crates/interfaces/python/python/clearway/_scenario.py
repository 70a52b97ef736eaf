"""Scenarios, plans and overrides as the simulator reads them: TOML texts and ``KEY=VALUE``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

from ._errors import ScenarioError

Scenario = Union[str, "os.PathLike[str]", Mapping[str, Any]]
"""A built-in name, a path, a TOML text or a dictionary."""

Overrides = Union[Mapping[str, Any], Iterable[str], None]
"""Keys with values, or texts ``KEY=VALUE`` as behind ``--set``."""

# What errors call a scenario or a plan that is no file.
_TEXT, _DICT = "the text", "the dict"


def source_of(scenario: Scenario, what: str = "scenario") -> str | tuple[str, str]:
    """A name or path; or what errors call the text, and the text. ``what`` it is has a name in errors, too."""
    if isinstance(scenario, Mapping):
        return _DICT, to_toml(scenario)
    name = os.fspath(scenario)
    if not isinstance(name, str):
        raise TypeError(f"a {what} is a name, a path, a TOML text or a dict")
    return (_TEXT, name) if isinstance(scenario, str) and _is_text(name) else name


def _is_text(name: str) -> bool:
    """True if it is a TOML text: a line of it may stand alone, but then it is no path."""
    if "\n" in name:
        return True
    key, equals, _ = name.partition("=")
    return bool(equals) and not name.endswith(".toml") and not {"/", os.sep} & set(key) and not os.path.exists(name)


def call_of(function: str, source: str | tuple[str, str], *arguments: str) -> str:
    """The call, as results tell of it."""
    named = repr(source) if isinstance(source, str) else "…"
    return f"clearway.{function}({', '.join([named, *arguments])})"


def threads_of(threads: int | None) -> int | None:
    """A number of worker threads; ``None`` for as many as pay."""
    if threads is not None and not 1 <= threads <= 1024:
        raise ScenarioError(f"threads={threads}: not from 1 to 1024\n  fix: leave it out for as many as are free")
    return threads


def overrides_of(overrides: Overrides, seed: int | None) -> list[str]:
    """``KEY=VALUE`` for each override."""
    if overrides is None:
        texts = []
    elif isinstance(overrides, Mapping):
        texts = [f"{key}={toml_value(value)}" for key, value in _flat(overrides, _part)]
    elif isinstance(overrides, str):
        texts = [overrides]
    else:
        texts = list(overrides)
    return texts if seed is None else [*texts, f"seed={toml_value(seed)}"]


def to_toml(scenario: Mapping[str, Any]) -> str:
    """The dictionary as TOML: a section for each dictionary in it, several for a list of dictionaries."""
    top, tables = [], []
    # Lines of each section: dotted keys at the top belong to one, too.
    sections: dict[str, list[str]] = {}
    for name, value in scenario.items():
        section, dot, key = str(name).partition(".")
        if dot:
            sections.setdefault(section, []).extend(_lines({key: value}))
        elif isinstance(value, Mapping):
            sections.setdefault(section, []).extend(_lines(value))
        elif _is_tables(value):
            for table in value:
                tables += [f"\n[[{_key(name)}]]", *_lines(table)]
        else:
            top.append(f"{_key(name)} = {toml_value(value)}")
    for section, lines in sections.items():
        top += [f"\n[{_key(section)}]", *lines]
    return "\n".join([*top, *tables, ""]).lstrip("\n")


def toml_value(value: Any) -> str:
    """A value as TOML: texts in quotes, numbers, lists, inline tables."""
    if hasattr(value, "tolist"):
        # A scalar or an array of numpy.
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {toml_value(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, os.PathLike):
        return _quoted(os.fspath(value))
    if isinstance(value, (int, float)):
        return repr(value)
    if hasattr(value, "__index__"):
        return repr(value.__index__())
    if hasattr(value, "__float__"):
        return repr(float(value))
    if isinstance(value, Sequence) or hasattr(value, "__iter__"):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    raise ScenarioError(
        f"{value!r}: a value of type {type(value).__name__}\n"
        "  fix: give text, a number, True or False, or a list of these"
    )


def _lines(section: Mapping[str, Any]) -> Iterator[str]:
    return (f"{key} = {toml_value(value)}" for key, value in _flat(section, _key))


def _flat(table: Mapping[str, Any], name_of: Callable[[Any], str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its value; those of inner dictionaries dotted."""
    for name, value in table.items():
        # A key that is dotted already stays as it is.
        key = prefix + ".".join(name_of(part) for part in str(name).split("."))
        if isinstance(value, Mapping) and value:
            yield from _flat(value, name_of, key + ".")
        else:
            # One that is empty is passed on: the reader knows whether there is such a section.
            yield key, value


def _is_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _key(name: Any) -> str:
    text = str(name)
    bare = text.replace("-", "").replace("_", "")
    return text if bare.isalnum() and bare.isascii() else _quoted(text)


def _part(name: Any) -> str:
    """A part of the key of an override, which may say which of several sections it means: ``workload[1]``."""
    text = str(name)
    section, bracket, rest = text.partition("[")
    return _key(section) + bracket + rest if rest.rstrip("]").isdigit() else _key(text)


def _quoted(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    letters = (escapes.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c) for c in text)
    return '"' + "".join(letters) + '"'
