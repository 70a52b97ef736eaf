"""Workloads of messages that are written out one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _clearway
from ._errors import ScenarioError

_EXAMPLE = "{'src': 0, 'dst': 1, 'bytes': '2MB'}"
_KEYS = ("src", "dst", "bytes", "start", "after", "tag")


def messages(rows: Iterable[Mapping[str, Any]] | Any) -> dict[str, Any]:
    """Messages as the ``workload`` of a scenario.

    :param rows: a list of dictionaries, or whatever hands over an Arrow stream (a table of pyarrow or polars, a frame of
        pandas, a relation of DuckDB), with

        * ``src``, ``dst``: numbers of the hosts;
        * ``bytes``: a number, or a text such as ``"2MB"``;
        * ``start``: a text such as ``"5us"``, or a number of picoseconds; the beginning without it;
        * ``after``: instead of a start, the indices of the messages to wait for (or one), from 0;
        * ``tag``: a whole number of its own for each message, which is its ``label`` in ``result.flows``; without tags the label is
          the index plus 1.

    >>> ring = [dict(src=0, dst=1, bytes="1MB"), dict(src=1, dst=0, bytes="1MB", after=[0])]
    >>> clearway.run({"topology": {"hosts": 16}, "workload": clearway.messages(ring)})

    Waiting is what ``clearway explain flows`` says: for messages that arrive at one's own host until they have arrived, for one's own
    until they are acknowledged.

    :raises ScenarioError: if a message lacks something, has something else, or waits for one that does not exist.
    """
    if hasattr(rows, "__arrow_c_stream__"):
        rows = _clearway.rows_of(rows)
    texts = [_text(index, row) for index, row in enumerate(rows)]
    if not texts:
        raise ScenarioError(f"there are no messages\n  fix: give at least one, such as {_EXAMPLE}")
    return {"kind": "flows", "flows": texts}


def _text(index: int, row: Mapping[str, Any]) -> str:
    def fault(what: str, fix: str) -> ScenarioError:
        return ScenarioError(f"message {index}: {what}\n  fix: {fix}")

    def whole(key: str, value: Any) -> int:
        try:
            number = value.__index__()
        except AttributeError:
            raise fault(f"`{key}` is {value!r}, no whole number", "give a whole number") from None
        if number < 0:
            raise fault(f"`{key}` is {number}", "give a whole number from 0 on")
        return int(number)

    def quantity(key: str, value: Any, read: Callable[[str], int], unit: str) -> str:
        if not isinstance(value, str):
            return f"{whole(key, value)}{unit}"
        try:
            read(value)
        except ScenarioError as error:
            raise ScenarioError(f"message {index}: `{key}`: {error}") from None
        return value

    if not isinstance(row, Mapping):
        raise fault(f"{row!r} is no dictionary", f"give dictionaries, such as {_EXAMPLE}")
    given = {key: value for key, value in row.items() if value is not None}
    for key in given:
        if key not in _KEYS:
            raise fault(f"there is no `{key}`", f"use {', '.join(_KEYS)}")
    for key in ("src", "dst", "bytes"):
        if key not in given:
            raise fault(f"it has no `{key}`", "give each message `src`, `dst` and `bytes`")
    size = quantity("bytes", given["bytes"], _clearway.length, "B")
    text = f"{whole('src', given['src'])}->{whole('dst', given['dst'])} {size}"
    if "tag" in given:
        text += f" tag {whole('tag', given['tag'])}"
    after = given.get("after", [])
    # Arrays of numpy have an index, too.
    after = after.tolist() if hasattr(after, "tolist") else after
    if isinstance(after, str) or not hasattr(after, "__iter__"):
        after = [after]
    if "start" in given:
        text += f" at {quantity('start', given['start'], _clearway.picoseconds, 'ps')}"
    if after:
        text += " after " + ",".join(str(whole("after", other) + 1) for other in after)
    return text
