"""Documents that the simulator makes: JSON, a table and a page of the same."""

from __future__ import annotations

import json

from ._result import Summary


class Document:
    """A document with its table, which ``print`` shows, and its page."""

    def __init__(self, parts: tuple[str, str, str]) -> None:
        text, self._table, self._page = parts
        self._document = json.loads(text, object_hook=Summary)

    @property
    def document(self) -> Summary:
        """The JSON that the command line writes."""
        assert isinstance(self._document, Summary)
        return self._document

    def report_html(self) -> str:
        """The page, which needs nothing else."""
        return self._page

    def __str__(self) -> str:
        return self._table
