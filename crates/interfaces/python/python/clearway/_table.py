"""Tables of results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from . import _html
from ._clearway import NativeTable


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: str
    unit: str
    null: str
    """Rows without a value; empty if all have one."""
    meaning: str


class Table:
    """A table of a result.

    Whoever reads Arrow streams takes it as it is: ``pyarrow.table(t)``, ``polars.DataFrame(t)``,
    ``pandas.DataFrame.from_arrow(t)``, ``duckdb.sql("from t")``. Rows are made as they are read. Without any of these,
    :meth:`to_pylist` and :meth:`to_pydict` give plain Python.
    """

    def __init__(self, name: str, native: NativeTable) -> None:
        self.name = name
        self._native = native

    @property
    def columns(self) -> list[Column]:
        """Columns in their order, with units and meanings."""
        return [Column(*column) for column in self._native.columns()]

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in range(0, len(self), 4096):
            yield from self.to_pylist(start, start + 4096)

    def to_pydict(self, start: int = 0, stop: int | None = None) -> dict[str, list[Any]]:
        """Values of the rows from ``start`` to before ``stop``, by column; ``None`` where a row has none."""
        start, stop, _ = slice(start, stop).indices(len(self))
        return self._native.values(start, max(start, stop))

    def to_pylist(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """The rows from ``start`` to before ``stop``, each a dictionary."""
        values = self.to_pydict(start, stop)
        return [dict(zip(values, row)) for row in zip(*values.values())]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a table stays in the process of its run\n  fix: send `pyarrow.table(table)` or `table.to_pydict()`")

    def __repr__(self) -> str:
        return f"<clearway.Table {self.name}: {len(self)} rows of {', '.join(self.column_names)}>"

    def _repr_html_(self) -> str:
        return _html.rows(self)
